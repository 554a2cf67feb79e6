"""Reads back the open transaction: a retry resumes behind its rows, and a task verifies its own."""

from collections.abc import Iterator
from typing import Final

from penstock.client.errors import RETRIABLE, RequestTimedOut, check
from penstock.client.route import ToLeader
from penstock.record.batch import BatchHeader, batches, crc_matches, payload_view
from penstock.record.crc import crc32c
from penstock.record.record import Record, records
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.epoch import (
    BatchDigest,
    Fresh,
    PartitionProgress,
    Resumed,
    SparkTransaction,
)
from penstock.types import Buffer, TopicPartition
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_FETCH_BYTES: Final = 4 * 1024 * 1024
_ANSWER_BYTES: Final = 64 * 1024
"""Size of a response besides its records."""
_LIMIT_BYTES: Final = 256 * 1024 * 1024
_WAIT_MS: Final = 500
_EMPTY_FETCHES: Final = 60


def written_rows(
    client: BlockingClient,
    topic_partition: TopicPartition,
    transaction: SparkTransaction,
    found: Resumed,
) -> Iterator[Record]:
    """The transaction's records in the partition, oldest first, as many as its leader counted."""
    for header, batch in _own_batches(client, topic_partition, transaction, found):
        if not crc_matches(batch, header):
            raise RequestTimedOut(
                f"{topic_partition} gave a damaged batch at offset {header.base_offset}"
            )
        yield from records(batch, header, _LIMIT_BYTES)


def written_batches(
    client: BlockingClient,
    topic_partition: TopicPartition,
    transaction: SparkTransaction,
    found: PartitionProgress,
) -> Iterator[BatchDigest]:
    """The transaction's batches in the partition, oldest first."""
    if isinstance(found, Fresh):
        return
    for header, batch in _own_batches(client, topic_partition, transaction, found):
        body = payload_view(batch, header, _LIMIT_BYTES)
        yield BatchDigest(header.base_sequence, header.record_count, crc32c(body))


def _own_batches(
    client: BlockingClient,
    topic_partition: TopicPartition,
    transaction: SparkTransaction,
    found: Resumed,
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The transaction's batches; skips those of others, and waits for those not yet replicated.

    A batch is a view, valid until the next one is requested.
    """
    left, position, empty = found.rows, found.start_offset, 0
    room = bytearray(_FETCH_BYTES + _ANSWER_BYTES)
    while left > 0:
        fetched = _fetched(client, topic_partition, position, room)
        before = position
        for at, header in batches(fetched):
            position = header.next_offset
            is_ours = (
                header.producer_id == transaction.producer_id
                and header.producer_epoch == transaction.producer_epoch
                and not header.is_control
            )
            if not is_ours:
                continue
            view = memoryview(fetched)[at : at + header.size_bytes]
            yield header, view
            left -= header.record_count
            if left <= 0:
                return
        empty = empty + 1 if position == before else 0
        if empty > _EMPTY_FETCHES:
            raise RequestTimedOut(
                f"{topic_partition}: {left} rows of the transaction are not replicated"
            )


def _fetched(
    client: BlockingClient, topic_partition: TopicPartition, position: int, room: bytearray
) -> Buffer:
    def attempt() -> Buffer:
        topic = client.topic(topic_partition.topic)
        partition = FetchPartition(
            partition=topic_partition.partition,
            current_leader_epoch=topic.partitions[topic_partition.partition].leader_epoch,
            fetch_offset=position,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            topics=[
                FetchTopic(topic=topic_partition.topic, topic_id=topic.id, partitions=[partition])
            ],
        )
        connection = client.connection(ToLeader(topic_partition))
        response = connection.receive(connection.send(request, FetchResponse), into=room)
        check(response.error_code, f"fetch of {topic_partition}")
        for topic_response in response.responses:
            for each in topic_response.partitions:
                return _records(each, topic_partition)
        return b""

    return client.retrying(attempt, retry_on=RETRIABLE)


def _records(partition: PartitionData, topic_partition: TopicPartition) -> Buffer:
    check(partition.error_code, f"fetch of {topic_partition}")
    assert isinstance(partition.records, Buffer | None), "a decoded response holds its records"
    return partition.records or b""
