"""Stray replicas: logs on this broker that the controller does not assign to it. Pure.

A broker that was down, or hung past its session, may have missed the reassignment of a replica or
the deletion of its topic. The controller's full set of control requests reveals it: this broker
must not serve a replica that the set does not name.
"""

from collections.abc import Container, Mapping

from penstock.metadata.image import ClusterImage
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid


def unknown_topics(held: Mapping[TopicPartition, Uuid], image: ClusterImage) -> set[str]:
    """Topics that have logs on this broker and are not in the image."""
    return {topic_partition.topic for topic_partition in held} - image.topics.keys()


def of_replaced_topics(
    held: Mapping[TopicPartition, Uuid], image: ClusterImage, names: Container[str]
) -> dict[TopicPartition, str]:
    """Logs of deleted topics whose names are among `names` and belong to new topics by now."""
    return {
        topic_partition: "has the id of a deleted topic whose name was reused"
        for topic_partition, topic_id in held.items()
        if topic_partition.topic in names
        and (topic := image.topics.get(topic_partition.topic)) is not None
        and NO_UUID not in {topic.id, topic_id}
        and topic.id != topic_id
    }


def strays(
    held: Mapping[TopicPartition, Uuid],
    image: ClusterImage,
    broker: BrokerId,
    existing_topics: Container[str],
) -> dict[TopicPartition, str]:
    """The strays among these logs, each with the reason.

    `held` has their topic ids. `existing_topics` has unknown topics that exist in the store: they
    are being created or deleted, or their nodes cannot be read. Their logs stay as they are.
    """
    found = of_replaced_topics(held, image, image.topics)
    for topic_partition in held:
        if topic_partition in found:
            continue
        topic = image.topics.get(topic_partition.topic)
        if topic is None:
            if topic_partition.topic not in existing_topics:
                found[topic_partition] = "belongs to a deleted topic"
        else:
            state = topic.partitions.get(topic_partition.partition)
            if state is not None and state.partition_epoch >= 0 and broker not in state.replicas:
                found[topic_partition] = "is assigned to other brokers now"
    return found
