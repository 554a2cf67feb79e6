"""The records of an offset range as a broker gives them: raw bytes, asked for ahead of time."""

from collections.abc import Iterator
from itertools import cycle
from struct import Struct
from time import monotonic
from typing import NamedTuple

import numpy as np

from penstock.client.listing import EARLIEST, LATEST, Isolation
from penstock.client.refusal import RETRIABLE, BrokerRefused, NoAnswer, check
from penstock.client.route import ToLeader
from penstock.errors import ErrorCode
from penstock.record.batch import HEADER_BYTES, LENGTH_END, CorruptBatch
from penstock.spark.client.cluster import Client
from penstock.spark.client.connection import Connection, Ticket
from penstock.spark.source.data_loss import report, resumed
from penstock.spark.source.lookup import list_offsets
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.settings import FetchSettings
from penstock.types import Buffer
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

READ_AHEAD = 1
"""Answers that wait to be decoded, beside the one that is decoded and the one that comes in."""
_SLACK_BYTES = 64 << 10
"""Room for what is in an answer beside records, and for a last batch that passes the limit."""
_RETRY_ON = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_START = Struct(">qi")
_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


class Fetched(NamedTuple):
    """Bytes of whole batches, good until the next but one answer is asked for."""

    start: int
    """The offset asked for; batches may begin before it."""
    records: memoryview
    aborted: list[AbortedTransaction]


class RangeFetch:
    """Iterates over the answers that cover a range. Used by one thread; `close` the client to end.

    The next request leaves before an answer is handed out, so the broker works meanwhile.
    """

    def __init__(
        self, client: Client, wanted: OffsetRange, settings: FetchSettings, *, fail: bool
    ) -> None:
        self._client, self._range, self._settings, self._fail = client, wanted, settings, fail
        self._position = wanted.start
        self._asked: tuple[Connection, Ticket[FetchResponse]] | None = None
        size = settings.partition_bytes + _SLACK_BYTES
        # Of numpy, whose memory is taken when it is written to: most ranges are small.
        self._buffers = cycle([np.empty(size, np.uint8).data for _ in range(READ_AHEAD + 2)])
        self._deadline = 0.0

    def __iter__(self) -> Iterator[Fetched]:
        self._progressed()
        while self._position < self._range.end:
            fetched = self._client.retrying(self._next, retry_on=_RETRY_ON)
            if fetched is not None:
                yield fetched

    def _next(self) -> Fetched | None:
        """The next answer with a batch in it; None if it had none."""
        connection, ticket = self._asked or self._ask()
        self._asked = None
        limit_ms = self._settings.max_wait_ms + self._client.settings.request_timeout_ms
        response = connection.receive(ticket, timeout_ms=limit_ms, into=next(self._buffers))
        try:
            answer = _partition(response, self._range, self._position)
        except BrokerRefused as refusal:
            if refusal.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            self._go_on_after_loss()
            return None
        assert isinstance(answer.records, Buffer | None), "a decoded answer holds its records"
        records = memoryview(answer.records or b"")
        behind = next_offset(records)
        if behind is None or behind <= self._position:
            self._check_patience(answer)
            return None
        asked, self._position = self._position, behind
        self._progressed()
        if self._position < self._range.end:
            self._asked = self._ask()
        committed = self._settings.isolation is Isolation.READ_COMMITTED
        return Fetched(asked, records, (answer.aborted_transactions or []) if committed else [])

    def _ask(self) -> tuple[Connection, Ticket[FetchResponse]]:
        place, settings = self._range.place, self._settings
        connection = self._client.connection(ToLeader(place))
        topic = self._client.topic(place.topic)
        partition = FetchPartition(
            partition=place.partition,
            current_leader_epoch=topic.partitions[place.partition].leader_epoch,
            fetch_offset=self._position,
            partition_max_bytes=settings.partition_bytes,
        )
        request = FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.partition_bytes,
            isolation_level=settings.isolation,
            topics=[FetchTopic(topic=place.topic, topic_id=topic.id, partitions=[partition])],
            rack_id=settings.rack,
        )
        return connection, connection.send(request, FetchResponse)

    def _go_on_after_loss(self) -> None:
        place = self._range.place
        isolation = self._settings.isolation
        earliest = list_offsets(self._client, {place: EARLIEST}, isolation)[place]
        latest = list_offsets(self._client, {place: LATEST}, isolation)[place]
        if earliest <= self._position <= latest:
            # It moved meanwhile: a new leader that was behind has caught up.
            self._check_patience(None)
            return
        position, lost = resumed(self._position, self._range.end, earliest, latest)
        report(f"{self._range}: {lost}", fail=self._fail)
        self._position = position

    def _progressed(self) -> None:
        self._deadline = monotonic() + self._client.settings.timeout_ms / 1000

    def _check_patience(self, answer: PartitionData | None) -> None:
        if monotonic() < self._deadline:
            return
        ends = "" if answer is None else f"; its readable end is {answer.last_stable_offset}"
        raise NoAnswer(
            f"{self._range}: no record from offset {self._position} within "
            f"kafka.default.api.timeout.ms, {self._client.settings.timeout_ms} ms{ends}"
        )


def next_offset(records: memoryview) -> int | None:
    """The offset behind the last whole batch; None where there is none."""
    at = last = 0
    size = len(records)
    base = -1
    while size - at >= HEADER_BYTES:
        offset, length = _START.unpack_from(records, at)
        if length < HEADER_BYTES - LENGTH_END:
            raise CorruptBatch(f"batch length {length} behind offset {base} is impossible")
        if at + LENGTH_END + length > size:
            break
        base, last = offset, at
        at += LENGTH_END + length
    if at == 0:
        return None
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(records, last + _LAST_OFFSET_DELTA_AT)
    return int(base + delta + 1)


def _partition(response: FetchResponse, wanted: OffsetRange, position: int) -> PartitionData:
    about = f"fetch of {wanted.place} from {position}"
    check(response.error_code, about)
    for topic in response.responses:
        for each in topic.partitions:
            if each.partition_index == wanted.place.partition:
                check(each.error_code, about)
                return each
    raise BrokerRefused(ErrorCode.UNKNOWN_SERVER_ERROR, about, "the answer leaves it out")
