"""Elects leaders of partitions."""

from collections.abc import Iterable

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import CONTROLLER
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition, indexes_by_topic
from penstock.wire.enums import ElectionType
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


async def elect_leaders(
    client: Client, election: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, KafkaError | None]:
    """Elect leaders of these partitions, None for all; returns the error of each, if any.

    For all partitions, the response leaves out those that need no election.
    """
    wanted = None
    if partitions is not None:
        wanted = [
            TopicPartitions(topic=name, partitions=indexes)
            for name, indexes in indexes_by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(
        election_type=election, topic_partitions=wanted, timeout_ms=client.request_timeout_ms
    )

    def raise_refusal(response: ElectLeadersResponse) -> None:
        check(response.error_code, f"{election.name.lower()} leaders")

    response = await client.call(request, ElectLeadersResponse, to=CONTROLLER, check=raise_refusal)
    return {
        TopicPartition(result.topic, part.partition_id): (
            None
            if part.error_code == ErrorCode.NONE
            else BrokerRefused(
                part.error_code, f"{result.topic}-{part.partition_id}", part.error_message
            )
        )
        for result in response.replica_election_results
        for part in result.partition_result
    }


async def elect_preferred(client: Client, partitions: Iterable[TopicPartition]) -> list[KafkaError]:
    """Elect the preferred leader of each partition; returns the errors of single partitions."""
    outcomes = await elect_leaders(client, ElectionType.PREFERRED, partitions)
    return [
        error
        for error in outcomes.values()
        if error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED
    ]
