"""Which replicas on this broker are strays: the controller does not assign them to it. Pure.

A broker that was away, or that stood still past its session, may have missed that a replica was
moved elsewhere or that its topic was deleted. Only the controller's full set of orders tells:
whatever it does not name is nobody's to serve.
"""

from collections.abc import Container, Mapping

from penstock.metadata.image import ClusterImage
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid


def unknown_topics(held: Mapping[TopicPartition, Uuid], image: ClusterImage) -> set[str]:
    """Topics of logs on this broker that the controller has not told of."""
    return {topic_partition.topic for topic_partition in held} - image.topics.keys()


def strays(
    held: Mapping[TopicPartition, Uuid],
    image: ClusterImage,
    broker: BrokerId,
    topics_there: Container[str],
) -> dict[TopicPartition, str]:
    """Why each of these logs, given with their topic ids, may not be served here.

    `topics_there` are unknown topics that the store has all the same: one may be about to be made
    or deleted, or its node cannot be read. Their logs stay as they are.
    """
    found = {}
    for topic_partition, topic_id in held.items():
        topic = image.topics.get(topic_partition.topic)
        if topic is None:
            if topic_partition.topic not in topics_there:
                found[topic_partition] = "is of a topic that was deleted"
        elif NO_UUID not in {topic.id, topic_id} and topic.id != topic_id:
            found[topic_partition] = "is of a deleted topic whose name was used again"
        else:
            state = topic.partitions.get(topic_partition.partition)
            if state is not None and state.partition_epoch >= 0 and broker not in state.replicas:
                found[topic_partition] = "is assigned to other brokers now"
    return found
