"""Deletes committed offsets of a group (KIP-496)."""

from collections.abc import Iterable

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import ToCoordinator
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition, indexes_by_topic
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)


async def delete_offsets(
    client: Client, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete the offsets; returns the error of each partition, if any."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in indexes],
            )
            for name, indexes in indexes_by_topic(partitions).items()
        ],
    )

    def raise_refusal(response: OffsetDeleteResponse) -> None:
        check(response.error_code, f"group {group}")

    response = await client.call(
        request, OffsetDeleteResponse, to=ToCoordinator(group), check=raise_refusal
    )
    return {
        TopicPartition(topic.name, each.partition_index): (
            None
            if each.error_code == ErrorCode.NONE
            else BrokerRefused(each.error_code, f"{topic.name}-{each.partition_index}")
        )
        for topic in response.topics
        for each in topic.partitions
    }
