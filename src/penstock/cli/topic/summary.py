"""A topic in one row. Separate from `view`, so that most commands start fast."""

from typing import Any

from penstock.client.metadata import TopicMetadata, replication_factor
from penstock.types import uuid_text


def summary(topic: TopicMetadata) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": uuid_text(topic.id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": replication_factor(topic),
    }
