"""WriteTxnMarkers (key 27, v1-v2): append the markers that end transactions to their partitions.

Sent by coordinators on other brokers, and by administrators who abort a hanging transaction.
Refused: markers of an older coordinator epoch; markers of an older producer epoch, once the marker
that ended their transaction is replicated; at `transaction.version` 2 (v2) also markers with the
epoch of an open transaction: they belong to the transaction before.
"""

from collections.abc import Coroutine, Generator, Sequence
from typing import Any, TypeAlias

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import PARTITIONS_A_TURN, at_once, by_topic, in_turns
from penstock.broker.parked import Parked
from penstock.broker.transaction.markers import WrittenMarker
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION
from penstock.errors import ErrorCode
from penstock.types import TopicPartition
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Results = dict[TopicPartition, WrittenMarker | ErrorCode]
Reply: TypeAlias = WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]

WAIT_MS = 30_000


def write_txn_markers(
    request: WriteTxnMarkersRequest, ctx: Context
) -> Reply | Coroutine[Any, Any, Reply]:
    return in_turns(answered(request, ctx))


def answered(request: WriteTxnMarkersRequest, ctx: Context) -> Generator[None, None, Reply]:
    written: list[tuple[WritableTxnMarker, Results]] = []
    count = 0
    for writable in request.markers:
        results: Results = {}
        for topic in writable.topics:
            for index in topic.partition_indexes:
                topic_partition = TopicPartition(topic.name, index)
                results[topic_partition] = write(topic_partition, writable, ctx)
                count += 1
                if count % PARTITIONS_A_TURN == 0:
                    yield
        written.append((writable, results))

    # A refusal is final: only written markers wait for their replicas.
    waiting = [
        (topic_partition, each)
        for _, results in written
        for topic_partition, each in results.items()
        if isinstance(each, WrittenMarker) and code(each) is None
    ]
    if not waiting:
        return (yield from respond(written))

    def attempt() -> WriteTxnMarkersResponse | None:
        done = all(code(each) is not None for _, each in waiting)
        return at_once(respond(written)) if done else None

    return Parked({key for key, _ in waiting}, WAIT_MS, attempt, lambda: at_once(respond(written)))


def respond(
    written: Sequence[tuple[WritableTxnMarker, Results]],
) -> Generator[None, None, WriteTxnMarkersResponse]:
    markers: list[WritableTxnMarkerResult] = []
    for marker, results in written:
        markers.append((yield from result(marker, results)))
        if len(markers) % PARTITIONS_A_TURN == 0:
            yield
    return WriteTxnMarkersResponse(markers=markers)


def write(
    topic_partition: TopicPartition, writable: WritableTxnMarker, ctx: Context
) -> WrittenMarker | ErrorCode:
    marker = TransactionMarker(
        writable.producer_id,
        writable.producer_epoch,
        writable.transaction_result,
        bumps_epoch=writable.transaction_version >= EPOCH_BUMP_VERSION,
    )
    try:
        return ctx.services.coordination.markers.append(
            topic_partition, marker, writable.coordinator_epoch
        )
    except PARTITION_ERRORS as error:
        return code_of(error)


def code(result: WrittenMarker | ErrorCode) -> ErrorCode | None:
    """The marker's error code; None while replicas lag behind."""
    if isinstance(result, ErrorCode):
        return result
    if result.is_committed():
        return result.refusal
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if result.is_lost else None


def result(
    marker: WritableTxnMarker, results: Results
) -> Generator[None, None, WritableTxnMarkerResult]:
    def result_code(topic_partition: TopicPartition) -> ErrorCode:
        found = code(results[topic_partition])
        return ErrorCode.REQUEST_TIMED_OUT if found is None else found

    topics = yield from by_topic(
        marker.topics,
        lambda topic: topic.partition_indexes,
        lambda topic, index: WritableTxnMarkerPartitionResult(
            partition_index=index, error_code=result_code(TopicPartition(topic.name, index))
        ),
        lambda topic, parts: WritableTxnMarkerTopicResult(name=topic.name, partitions=parts),
    )
    return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
