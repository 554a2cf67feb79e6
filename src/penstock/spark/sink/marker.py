"""Reads and writes the marker of the last committed micro-batch, in the transaction of its rows.

`epoch.py` says what markers mean.
"""

from collections.abc import Callable
from typing import TypeVar

from penstock.client.committed import committed_request, group_offsets
from penstock.client.errors import RETRIABLE, IncompleteResponse, check
from penstock.client.route import KeyType, Route, ToCoordinator
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.epoch import (
    EpochCommit,
    EpochFailed,
    EpochMarker,
    SparkTransaction,
    read_marker,
)
from penstock.spark.sink.explicit_transactions import use_explicit_versions
from penstock.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from penstock.wire.messages.offset_fetch import OffsetFetchResponse
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)


def committed_markers(client: BlockingClient, transactional_id: str) -> tuple[EpochMarker, ...]:
    """The sink's committed markers; waits while a transaction of the group is pending."""

    def attempt() -> tuple[EpochMarker, ...]:
        connection = client.connection(ToCoordinator(transactional_id))
        ticket = connection.send(committed_request(transactional_id), OffsetFetchResponse)
        return markers_of(connection.receive(ticket), transactional_id, ticket.version)

    return client.retrying(attempt, retry_on=RETRIABLE)


def markers_of(
    response: OffsetFetchResponse, transactional_id: str, version: int
) -> tuple[EpochMarker, ...]:
    """The markers in a response. It must name the group: taking an incomplete response for "no
    marker" would write a micro-batch twice.
    """
    found = [
        read_marker(each.committed_offset, each.metadata)
        for topic in group_offsets(transactional_id, response, version).topics
        for each in topic.partitions
    ]
    return tuple(marker for marker in found if marker is not None)


def write_markers(client: BlockingClient, decided: EpochCommit) -> None:
    """Commit the marker in the transaction, as offsets of a group with the transactional id's name.

    Each topic that the epoch wrote to gets a copy, under partition 0: a group's offsets need an
    existing topic, and a deleted topic takes only its own copy with it. Readers therefore fetch all
    offsets of the group.
    """
    transaction = decided.transaction
    if not transaction.implicit:
        joined = AddOffsetsToTxnRequest(
            transactional_id=transaction.id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            group_id=transaction.id,
        )
        ask_coordinator(
            client,
            transaction,
            joined,
            AddOffsetsToTxnResponse,
            lambda response: check(response.error_code, f"group {transaction.id}"),
        )

    def attempt() -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=transaction.id,
            group_id=transaction.id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    topic_id=client.topic(topic, create=True).id,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0,
                            committed_offset=decided.marker.next_batch,
                            committed_metadata=decided.marker.metadata,
                        )
                    ],
                )
                for topic in sorted(decided.marker_topics)
            ],
        )
        connection = client.connection(ToCoordinator(transaction.id))
        if not transaction.implicit:
            use_explicit_versions(connection)
        response = connection.call(request, TxnOffsetCommitResponse)
        about = f"marker of transaction {transaction.id}"
        responses = [each for topic in response.topics for each in topic.partitions]
        if len(responses) < len(decided.marker_topics):
            raise IncompleteResponse(f"{about}: the coordinator's response does not name it")
        for each in responses:
            if each.error_code in {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}:
                raise EpochFailed(
                    f"{about}: the transaction has ended, or a newer run of this query has"
                    " taken over"
                )
            check(each.error_code, about)

    client.retrying(attempt, retry_on=RETRIABLE)


def ask_coordinator(
    client: BlockingClient,
    transaction: SparkTransaction,
    request: Message,
    response_type: type[R],
    check_response: Callable[[R], None],
) -> None:
    to: Route = ToCoordinator(transaction.id, KeyType.TRANSACTION)

    def attempt() -> None:
        connection = client.connection(to)
        if not transaction.implicit:
            use_explicit_versions(connection)
        check_response(connection.call(request, response_type))

    client.retrying(attempt, retry_on=RETRIABLE)
