"""A topic in one row. Apart from `view`, since most calls need no more and should start fast."""

from typing import Any

from penstock.client.metadata import TopicMetadata
from penstock.types import uuid_text


def replication_factor(topic: TopicMetadata) -> int:
    """The maximum of its partitions: a partition that is being moved has more replicas."""
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)


def summary(topic: TopicMetadata) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": uuid_text(topic.id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": replication_factor(topic),
    }
