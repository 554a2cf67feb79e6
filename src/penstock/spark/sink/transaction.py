"""The sink's requests to coordinators and leaders; `epoch.py` tells what the answers mean."""

from collections.abc import Container, Iterable
from typing import Final

from penstock.client.errors import RETRIABLE, BrokerRefused, IncompleteResponse, check
from penstock.client.route import KeyType, ToBroker, ToCoordinator
from penstock.client.versions import api_versions_request
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.epoch import (
    Commit,
    Ending,
    EpochFailed,
    Progress,
    Transaction,
    check_counts,
    ending,
    is_committed,
    progress,
)
from penstock.spark.sink.explicit import explicit
from penstock.spark.sink.marker import ask_coordinator, committed_markers, write_markers
from penstock.types import TopicPartition, indexes_by_topic
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.api_versions import ApiVersionsResponse
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_ADD_PARTITIONS: Final = 24
_CLIENTS_ADD_PARTITIONS: Final = 3
"""From version 4 on AddPartitionsToTxn is for brokers."""
_IMPLICIT_FROM: Final = 2
_OFFSETS: Final = "__consumer_offsets"
_TRANSACTION_VERSION: Final = "transaction.version"


def open_transaction(client: BlockingClient, transactional_id: str, timeout_ms: int) -> Transaction:
    """A transaction of our own; whatever was open under the id is over, and its writers fenced.

    The order matters: only when nothing of an earlier run can be committed any more, is the
    marker the last word on it.
    """
    coordinator = ToCoordinator(transactional_id, KeyType.TRANSACTION)
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def fits(response: InitProducerIdResponse) -> None:
        words = None
        if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            words = (
                f"kafka.transaction.timeout.ms = {timeout_ms} is above the broker's "
                "transaction.max.timeout.ms"
            )
        check(response.error_code, f"transactional id {transactional_id}", words)

    opened = client.call(
        request, InitProducerIdResponse, to=coordinator, check=fits, retry_on=RETRIABLE
    )
    return Transaction(
        transactional_id,
        opened.producer_id,
        opened.producer_epoch,
        _implicit(client, coordinator),
        committed_markers(client, transactional_id),
    )


def add_partitions(
    client: BlockingClient, transaction: Transaction, places: Iterable[TopicPartition]
) -> None:
    """Make the partitions part of the transaction, where a first write does not."""
    topics = [
        AddPartitionsToTxnTopic(name=name, partitions=indexes)
        for name, indexes in indexes_by_topic(places).items()
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=topics,
    )

    wanted = {TopicPartition(each.name, index) for each in topics for index in each.partitions}

    def fine(response: AddPartitionsToTxnResponse) -> None:
        added = set()
        for topic in response.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                place = TopicPartition(topic.name, each.partition_index)
                check(each.partition_error_code, f"{place} in transaction {transaction.id}")
                added.add(place)
        _all_answered(wanted, added, f"transaction {transaction.id}")

    def attempt() -> None:
        connection = client.connection(ToCoordinator(transaction.id, KeyType.TRANSACTION))
        versions = connection.versions
        versions[_ADD_PARTITIONS] = min(versions[_ADD_PARTITIONS], _CLIENTS_ADD_PARTITIONS)
        fine(connection.call(request, AddPartitionsToTxnResponse))

    client.retrying(attempt, retry_on=RETRIABLE)


def transaction_progress(
    client: BlockingClient, transaction: Transaction, places: Iterable[TopicPartition]
) -> dict[TopicPartition, Progress]:
    """How far the transaction is in each of the partitions, as their leaders remember."""
    wanted = list(places)

    def attempt() -> dict[TopicPartition, Progress]:
        found: dict[TopicPartition, Progress] = {}
        for leader, led in client.by_leader(wanted).items():
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=name, partition_indexes=indexes)
                    for name, indexes in indexes_by_topic(led).items()
                ]
            )
            connection = client.connection(ToBroker(leader))
            response = connection.call(request, DescribeProducersResponse)
            for topic in response.topics:
                for each in topic.partitions:
                    place = TopicPartition(topic.name, each.partition_index)
                    words = each.error_message
                    if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        words = "transactional=true needs READ on the topic, to resume tasks"
                    check(each.error_code, f"producers of {place}", words)
                    found[place] = progress(place, each.active_producers, transaction)
        _all_answered(wanted, found, "producers")
        return found

    return client.retrying(attempt, retry_on=RETRIABLE)


def participants(client: BlockingClient, transaction: Transaction) -> set[TopicPartition]:
    """The partitions that anyone wrote to in the transaction, reported or not."""

    def fine(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            check(state.error_code, f"transaction {transaction.id}")
        if not response.transaction_states:
            raise IncompleteResponse(f"transaction {transaction.id}: the answer does not name it")

    response = client.call(
        DescribeTransactionsRequest(transactional_ids=[transaction.id]),
        DescribeTransactionsResponse,
        to=ToCoordinator(transaction.id, KeyType.TRANSACTION),
        check=fine,
        retry_on=RETRIABLE,
    )
    return {
        TopicPartition(topic.topic, index)
        for state in response.transaction_states
        for topic in state.topics
        for index in topic.partitions
        if topic.topic != _OFFSETS  # the marker, of a commit that is asked for again
    }


def commit(client: BlockingClient, decided: Commit) -> None:
    """All or nothing: the rows and the marker, if the leaders have what the tasks reported."""
    places = decided.rows.keys() | participants(client, decided.transaction)
    check_counts(decided, transaction_progress(client, decided.transaction, places))
    write_markers(client, decided)
    _end(client, decided)


def abort(client: BlockingClient, transaction: Transaction) -> None:
    """End it as if it had never been. Where it is over already, it is over."""
    request = EndTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=False,
    )
    over = {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }

    def fine(response: EndTxnResponse) -> None:
        if response.error_code not in over:
            check(response.error_code, f"abort of transaction {transaction.id}")

    ask_coordinator(client, transaction, request, EndTxnResponse, fine)


def _end(client: BlockingClient, decided: Commit) -> None:
    transaction, batch_id = decided.transaction, decided.marker.next_batch - 1
    asked_before = False
    request = EndTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=True,
    )
    about = f"commit of transaction {transaction.id}"

    def attempt() -> None:
        nonlocal asked_before
        connection = client.connection(ToCoordinator(transaction.id, KeyType.TRANSACTION))
        if not transaction.implicit:
            explicit(connection)
        before, asked_before = asked_before, True
        code = connection.call(request, EndTxnResponse).error_code
        match ending(code, asked_before=before, retriable=RETRIABLE):
            case Ending.DONE:
                return
            case Ending.AGAIN:
                raise BrokerRefused(code, about)
            case Ending.UNKNOWN:
                markers = committed_markers(client, transaction.id)
                if not is_committed(markers, decided.marker.query, batch_id):
                    raise EpochFailed(f"{about}: it was aborted; start the query again")
            case Ending.REFUSED:
                raise EpochFailed(
                    f"{about}: {BrokerRefused(code, 'refused')}; it took longer than "
                    "kafka.transaction.timeout.ms, or a newer run of this query has taken over"
                )

    client.retrying(attempt, retry_on=RETRIABLE)


def _all_answered(
    wanted: Iterable[TopicPartition], answered: Container[TopicPartition], about: str
) -> None:
    left_out = [place for place in wanted if place not in answered]
    if left_out:
        raise IncompleteResponse(f"{about}: the answer leaves out {left_out[0]}")


def _implicit(client: BlockingClient, coordinator: ToCoordinator) -> bool:
    """Whether the cluster's `transaction.version` lets first writes add their partitions."""

    def attempt() -> bool:
        connection = client.connection(coordinator)
        response = connection.call(api_versions_request(), ApiVersionsResponse)
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        return levels.get(_TRANSACTION_VERSION, 0) >= _IMPLICIT_FROM

    return client.retrying(attempt, retry_on=RETRIABLE)
