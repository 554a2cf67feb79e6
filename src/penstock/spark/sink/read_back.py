"""Reads what is written in the open transaction: to go on behind it, and to be sure of it."""

from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from penstock.client.errors import RETRIABLE, RequestTimedOut, check
from penstock.client.route import ToLeader
from penstock.record.batch import BatchHeader, batches, crc_matches
from penstock.record.record import Record, payload_view, records
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.epoch import Batch, Fresh, Progress, Resumed, Transaction
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
"""What an answer takes besides its records."""
_LIMIT_BYTES: Final = 256 * 1024 * 1024
_WAIT_MS: Final = 500
_EMPTY_FETCHES: Final = 60


def written_rows(
    client: BlockingClient, place: TopicPartition, transaction: Transaction, found: Resumed
) -> Iterator[Record]:
    """The transaction's records in the partition, oldest first: as many as its leader counted."""
    for header, batch in _own_batches(client, place, transaction, found):
        if not crc_matches(batch, header):
            raise RequestTimedOut(f"{place} gave a damaged batch at offset {header.base_offset}")
        yield from records(batch, header, _LIMIT_BYTES)


def written_batches(
    client: BlockingClient, place: TopicPartition, transaction: Transaction, found: Progress
) -> Iterator[Batch]:
    """The same as batches, by what tells one from another."""
    if isinstance(found, Fresh):
        return
    for header, batch in _own_batches(client, place, transaction, found):
        body = payload_view(batch, header, _LIMIT_BYTES)
        yield Batch(header.base_sequence, header.record_count, crc32c(body))


def _own_batches(
    client: BlockingClient, place: TopicPartition, transaction: Transaction, found: Resumed
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Those that are not replicated yet are waited for; what others write is passed over.

    A batch is a view that is good until the next one is asked for.
    """
    left, position, empty = found.rows, found.start_offset, 0
    room = bytearray(_FETCH_BYTES + _ANSWER_BYTES)
    while left > 0:
        fetched = _fetched(client, place, position, room)
        before = position
        for at, header in batches(fetched):
            position = header.next_offset
            ours = (
                header.producer_id == transaction.producer_id
                and header.producer_epoch == transaction.producer_epoch
                and not header.is_control
            )
            if not ours:
                continue
            view = memoryview(fetched)[at : at + header.size_bytes]
            yield header, view
            left -= header.record_count
            if left <= 0:
                return
        empty = empty + 1 if position == before else 0
        if empty > _EMPTY_FETCHES:
            raise RequestTimedOut(f"{place}: {left} rows of the transaction are not replicated")


def _fetched(
    client: BlockingClient, place: TopicPartition, position: int, room: bytearray
) -> Buffer:
    def attempt() -> Buffer:
        topic = client.topic(place.topic)
        asked = FetchPartition(
            partition=place.partition,
            current_leader_epoch=topic.partitions[place.partition].leader_epoch,
            fetch_offset=position,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(topic=place.topic, topic_id=topic.id, partitions=[asked])],
        )
        connection = client.connection(ToLeader(place))
        response = connection.receive(connection.send(request, FetchResponse), into=room)
        check(response.error_code, f"fetch of {place}")
        for answer in response.responses:
            for each in answer.partitions:
                return _records(each, place)
        return b""

    return client.retrying(attempt, retry_on=RETRIABLE)


def _records(answer: PartitionData, place: TopicPartition) -> Buffer:
    check(answer.error_code, f"fetch of {place}")
    assert isinstance(answer.records, Buffer | None), "a decoded answer holds its records"
    return answer.records or b""
