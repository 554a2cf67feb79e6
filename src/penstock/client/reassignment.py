"""Reassigns partitions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import CONTROLLER
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class OngoingReassignment(NamedTuple):
    """A partition's ongoing reassignment."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


async def reassign(
    client: Client, targets: Mapping[TopicPartition, Sequence[BrokerId] | None]
) -> list[KafkaError]:
    """Start reassignments; None cancels one. Returns the errors of single partitions."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), replicas in targets.items():
        wanted: list[int] | None = None if replicas is None else [*replicas]
        topics.setdefault(topic, []).append(
            ReassignablePartition(partition_index=index, replicas=wanted)
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=client.request_timeout_ms,
        topics=[ReassignableTopic(name=name, partitions=each) for name, each in topics.items()],
    )

    def raise_refusal(response: AlterPartitionReassignmentsResponse) -> None:
        check(response.error_code, "reassignment", response.error_message)

    response = await client.call(
        request, AlterPartitionReassignmentsResponse, to=CONTROLLER, check=raise_refusal
    )
    return [
        BrokerRefused(part.error_code, f"{topic.name}-{part.partition_index}", part.error_message)
        for topic in response.responses
        for part in topic.partitions
        if part.error_code != ErrorCode.NONE
    ]


async def ongoing_reassignments(client: Client) -> dict[TopicPartition, OngoingReassignment]:
    def raise_refusal(response: ListPartitionReassignmentsResponse) -> None:
        check(response.error_code, "reassignments", response.error_message)

    response = await client.call(
        ListPartitionReassignmentsRequest(timeout_ms=client.request_timeout_ms),
        ListPartitionReassignmentsResponse,
        to=CONTROLLER,
        check=raise_refusal,
    )
    return {
        TopicPartition(topic.name, part.partition_index): OngoingReassignment(
            tuple(map(BrokerId, part.replicas)),
            tuple(map(BrokerId, part.adding_replicas)),
            tuple(map(BrokerId, part.removing_replicas)),
        )
        for topic in response.topics
        for part in topic.partitions
    }
