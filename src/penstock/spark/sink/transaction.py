"""The sink's requests to coordinators and leaders; `epoch.py` decides what the responses mean."""

from collections.abc import Container, Iterable
from typing import Final

from penstock.client.errors import RETRIABLE, BrokerRefused, IncompleteResponse, check
from penstock.client.route import KeyType, ToBroker, ToCoordinator
from penstock.client.versions import api_versions_request
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.epoch import (
    EndTxnResult,
    EpochCommit,
    EpochFailed,
    PartitionProgress,
    SparkTransaction,
    check_counts,
    end_txn_result,
    is_committed,
    partition_progress,
)
from penstock.spark.sink.explicit_transactions import use_explicit_versions
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
"""AddPartitionsToTxn is for brokers from version 4 on."""
_IMPLICIT_FROM: Final = 2
_OFFSETS: Final = "__consumer_offsets"
_TRANSACTION_VERSION: Final = "transaction.version"


def open_transaction(
    client: BlockingClient, transactional_id: str, timeout_ms: int
) -> SparkTransaction:
    """Open a transaction; one that was open under the id is aborted, and its writers are fenced.

    The order matters: markers are final only once no earlier run can commit any more.
    """
    coordinator = ToCoordinator(transactional_id, KeyType.TRANSACTION)
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def check_response(response: InitProducerIdResponse) -> None:
        message = None
        if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            message = (
                f"kafka.transaction.timeout.ms = {timeout_ms} is above the broker's "
                "transaction.max.timeout.ms"
            )
        check(response.error_code, f"transactional id {transactional_id}", message)

    opened = client.call(
        request, InitProducerIdResponse, to=coordinator, check=check_response, retry_on=RETRIABLE
    )
    return SparkTransaction(
        transactional_id,
        opened.producer_id,
        opened.producer_epoch,
        _implicit(client, coordinator),
        committed_markers(client, transactional_id),
    )


def add_partitions(
    client: BlockingClient, transaction: SparkTransaction, partitions: Iterable[TopicPartition]
) -> None:
    """Add the partitions to the transaction, on a cluster where a first write does not."""
    topics = [
        AddPartitionsToTxnTopic(name=name, partitions=indexes)
        for name, indexes in indexes_by_topic(partitions).items()
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=topics,
    )

    wanted = {TopicPartition(each.name, index) for each in topics for index in each.partitions}

    def check_response(response: AddPartitionsToTxnResponse) -> None:
        added = set()
        for topic in response.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                tp = TopicPartition(topic.name, each.partition_index)
                check(each.partition_error_code, f"{tp} in transaction {transaction.id}")
                added.add(tp)
        _all_answered(wanted, added, f"transaction {transaction.id}")

    def attempt() -> None:
        connection = client.connection(ToCoordinator(transaction.id, KeyType.TRANSACTION))
        versions = connection.versions
        versions[_ADD_PARTITIONS] = min(versions[_ADD_PARTITIONS], _CLIENTS_ADD_PARTITIONS)
        check_response(connection.call(request, AddPartitionsToTxnResponse))

    client.retrying(attempt, retry_on=RETRIABLE)


def transaction_progress(
    client: BlockingClient, transaction: SparkTransaction, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionProgress]:
    """How many rows of the transaction each partition has, by its leader's producer state."""
    wanted = list(partitions)

    def attempt() -> dict[TopicPartition, PartitionProgress]:
        found: dict[TopicPartition, PartitionProgress] = {}
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
                    tp = TopicPartition(topic.name, each.partition_index)
                    message = each.error_message
                    if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        message = "transactional=true needs READ on the topic, to resume tasks"
                    check(each.error_code, f"producers of {tp}", message)
                    found[tp] = partition_progress(tp, each.active_producers, transaction)
        _all_answered(wanted, found, "producers")
        return found

    return client.retrying(attempt, retry_on=RETRIABLE)


def participants(client: BlockingClient, transaction: SparkTransaction) -> set[TopicPartition]:
    """The partitions of the transaction, also those that no task reported."""

    def check_response(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            check(state.error_code, f"transaction {transaction.id}")
        if not response.transaction_states:
            raise IncompleteResponse(f"transaction {transaction.id}: the response does not name it")

    response = client.call(
        DescribeTransactionsRequest(transactional_ids=[transaction.id]),
        DescribeTransactionsResponse,
        to=ToCoordinator(transaction.id, KeyType.TRANSACTION),
        check=check_response,
        retry_on=RETRIABLE,
    )
    return {
        TopicPartition(topic.topic, index)
        for state in response.transaction_states
        for topic in state.topics
        for index in topic.partitions
        if topic.topic != _OFFSETS  # holds the marker, if the commit is retried
    }


def commit(client: BlockingClient, decided: EpochCommit) -> None:
    """Commit rows and marker together, if the leaders have what the tasks reported."""
    partitions = decided.rows.keys() | participants(client, decided.transaction)
    check_counts(decided, transaction_progress(client, decided.transaction, partitions))
    write_markers(client, decided)
    _end(client, decided)


def abort(client: BlockingClient, transaction: SparkTransaction) -> None:
    """Abort the transaction, unless it has ended already."""
    request = EndTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=False,
    )
    ended = {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }

    def check_response(response: EndTxnResponse) -> None:
        if response.error_code not in ended:
            check(response.error_code, f"abort of transaction {transaction.id}")

    ask_coordinator(client, transaction, request, EndTxnResponse, check_response)


def _end(client: BlockingClient, decided: EpochCommit) -> None:
    transaction, batch_id = decided.transaction, decided.marker.next_batch - 1
    sent_before = False
    request = EndTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=True,
    )
    about = f"commit of transaction {transaction.id}"

    def attempt() -> None:
        nonlocal sent_before
        connection = client.connection(ToCoordinator(transaction.id, KeyType.TRANSACTION))
        if not transaction.implicit:
            use_explicit_versions(connection)
        before, sent_before = sent_before, True
        code = connection.call(request, EndTxnResponse).error_code
        match end_txn_result(code, sent_before=before, retriable=RETRIABLE):
            case EndTxnResult.DONE:
                return
            case EndTxnResult.AGAIN:
                raise BrokerRefused(code, about)
            case EndTxnResult.UNKNOWN:
                markers = committed_markers(client, transaction.id)
                if not is_committed(markers, decided.marker.query, batch_id):
                    raise EpochFailed(f"{about}: it was aborted; start the query again")
            case EndTxnResult.REFUSED:
                raise EpochFailed(
                    f"{about}: {BrokerRefused(code, 'refused')}; it took longer than "
                    "kafka.transaction.timeout.ms, or a newer run of this query has taken over"
                )

    client.retrying(attempt, retry_on=RETRIABLE)


def _all_answered(
    wanted: Iterable[TopicPartition], answered: Container[TopicPartition], about: str
) -> None:
    left_out = [tp for tp in wanted if tp not in answered]
    if left_out:
        raise IncompleteResponse(f"{about}: the response leaves out {left_out[0]}")


def _implicit(client: BlockingClient, coordinator: ToCoordinator) -> bool:
    """Whether a first write adds its partition, by the cluster's `transaction.version`."""

    def attempt() -> bool:
        connection = client.connection(coordinator)
        response = connection.call(api_versions_request(), ApiVersionsResponse)
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        return levels.get(_TRANSACTION_VERSION, 0) >= _IMPLICIT_FROM

    return client.retrying(attempt, retry_on=RETRIABLE)
