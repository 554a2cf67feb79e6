"""Finds the topic and the partition that a request names."""

from penstock.metadata.image import ClusterImage
from penstock.replication.errors import NotLeader, UnknownPartition, UnknownTopicId
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import TopicPartition, Uuid


def topic_name(name: str, topic_id: Uuid, image: ClusterImage, *, by_id: bool) -> str:
    """The topic's name; in request versions with topic ids, it is looked up by id."""
    if not by_id:
        return name
    found = image.topic_names.get(topic_id)
    if found is None:
        raise UnknownTopicId(f"no topic has the id {topic_id.hex()}")
    return found


def partition_here(
    partitions: Partitions, image: ClusterImage, topic: str, index: int
) -> Partition:
    """The partition; raise if it does not exist, or only other brokers have it."""
    found = partitions.here.get((topic, index))
    if found is None:
        if image.partition(TopicPartition(topic, index)) is not None:
            raise NotLeader(f"{topic}-{index} is on other brokers")
        raise UnknownPartition(f"{topic}-{index} does not exist")
    return found
