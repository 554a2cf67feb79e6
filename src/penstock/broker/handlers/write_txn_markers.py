"""WriteTxnMarkers (key 27, v1-v2): append the markers that end transactions to their partitions.

Sent by coordinators on other brokers, and by administrators who abort a hanging transaction.
Refused: markers of an older coordinator epoch; markers of an older producer epoch, once what ended
their transaction is replicated; at `transaction.version` 2 (v2) also markers of the epoch of an
open transaction: they belong to the one before.
"""

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.parked import Parked
from penstock.broker.transaction.markers import Written
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

Results = dict[TopicPartition, Written | ErrorCode]

WAIT_MS = 30_000


def write_txn_markers(
    request: WriteTxnMarkersRequest, ctx: Context
) -> WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]:
    written = [(marker, write(marker, ctx)) for marker in request.markers]

    def attempt() -> WriteTxnMarkersResponse | None:
        done = all(code(each) is not None for _, results in written for each in results.values())
        return respond() if done else None

    def respond() -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(markers=[result(*each) for each in written])

    keys = {topic_partition for _, results in written for topic_partition in results}
    return attempt() or Parked(keys, WAIT_MS, attempt, respond)


def write(writable: WritableTxnMarker, ctx: Context) -> Results:
    marker = TransactionMarker(
        writable.producer_id,
        writable.producer_epoch,
        writable.transaction_result,
        bumps_epoch=writable.transaction_version >= EPOCH_BUMP_VERSION,
    )
    results: Results = {}
    for topic in writable.topics:
        for index in topic.partition_indexes:
            topic_partition = TopicPartition(topic.name, index)
            try:
                results[topic_partition] = ctx.services.coordination.markers.append(
                    topic_partition, marker, writable.coordinator_epoch
                )
            except PARTITION_ERRORS as error:
                results[topic_partition] = code_of(error)
    return results


def code(result: Written | ErrorCode) -> ErrorCode | None:
    """None while replicas lag behind."""
    if isinstance(result, ErrorCode):
        return result
    if result.is_committed():
        return result.refusal
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if result.is_lost else None


def result(marker: WritableTxnMarker, results: Results) -> WritableTxnMarkerResult:
    def result_code(topic_partition: TopicPartition) -> ErrorCode:
        found = code(results[topic_partition])
        return ErrorCode.REQUEST_TIMED_OUT if found is None else found

    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=result_code(TopicPartition(topic.name, index)),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
