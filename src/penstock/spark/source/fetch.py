"""The records of an offset range as a broker gives them: raw bytes, asked for ahead of time."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from struct import Struct
from threading import Condition
from time import monotonic
from typing import NamedTuple

import numpy as np

from penstock.client.errors import RETRIABLE, BrokerRefused, ConnectionFailed, check
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.route import ToLeader
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import HEADER_BYTES, LENGTH_END, CorruptBatch
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.connection import BlockingConnection, SentRequest
from penstock.spark.source.data_loss import report, resumed
from penstock.spark.source.leases import (
    Ask,
    Done,
    Lease,
    RangeRead,
    Receive,
    Step,
    WaitForReader,
)
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
    """Bytes of whole batches, good until `done` is called: whoever reads them must call it."""

    start: int
    """The offset asked for; batches may begin before it."""
    records: memoryview
    aborted: list[AbortedTransaction]
    done: Callable[[], None]


class ReadTimedOut(KafkaError):
    """No record came within kafka.default.api.timeout.ms; no attempt is made after this.

    Its code is none of those that are retried: it ends the retries.
    """


class RangeFetch:
    """Iterates over the answers that cover a range, in one thread; any thread may end it.

    The next request leaves before an answer is handed out, so the broker works meanwhile. `done`
    of an answer may be called by another thread, and in any order.
    """

    def __init__(
        self, client: BlockingClient, wanted: OffsetRange, settings: FetchSettings, *, fail: bool
    ) -> None:
        self._client, self._range, self._settings, self._fail = client, wanted, settings, fail
        self._asked: tuple[BlockingConnection, SentRequest[FetchResponse]] | None = None
        count, size = READ_AHEAD + 2, settings.partition_bytes + _SLACK_BYTES
        # Of numpy, whose memory is taken when it is written to: most ranges are small.
        self._buffers = [np.empty(size, np.uint8).data for _ in range(count)]
        self._read = RangeRead(wanted.start, wanted.end, count)
        self._changed = Condition()
        """Guards `_read`: readers return buffers from their own thread."""
        self._is_closed = False
        self._empty_since: float | None = None

    def __iter__(self) -> Iterator[Fetched]:
        while not isinstance(self._step(), Done):
            fetched = self._client.retrying(self._next, retry_on=_RETRY_ON)
            if fetched is not None:
                self._ask_ahead()
                yield fetched

    def close(self) -> None:
        """End the iteration, even while it waits for a broker or for a reader."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._client.close()

    def _step(self) -> Step:
        """What to do next, as soon as a buffer is free."""
        with self._changed:
            while isinstance(step := self._read.step(), WaitForReader):
                if self._is_closed:
                    raise ConnectionFailed("the read was closed")
                self._changed.wait()
        return step

    def _next(self) -> Fetched | None:
        """The next answer with a batch in it; None if it had none."""
        try:
            if isinstance(step := self._step(), Ask):
                self._ask(step.offset)
                step = self._step()
            assert isinstance(step, Receive), "a request is on its way"
            return self._received(self._buffers[step.buffer])
        except BaseException:
            self._asked = None
            with self._changed:
                self._read.failed()
            raise

    def _received(self, into: memoryview) -> Fetched | None:
        assert self._asked is not None, "a request is on its way"
        connection, ticket = self._asked
        limit_ms = self._settings.max_wait_ms + self._client.settings.request_timeout_ms
        response = connection.receive(ticket, timeout_ms=limit_ms, into=into)
        self._asked = None
        position = self._read.position
        try:
            answer = _partition(response, self._range, position)
        except BrokerRefused as refusal:
            if refusal.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            with self._changed:
                self._read.empty()
            self._go_on_after_loss()
            return None
        assert isinstance(answer.records, Buffer | None), "a decoded answer holds its records"
        records = memoryview(answer.records or b"")
        behind = next_offset(records)
        if behind is None or behind <= position:
            with self._changed:
                self._read.empty()
            self._check_patience(answer)
            return None
        with self._changed:
            lease = self._read.answered(behind)
        self._empty_since = None
        committed = self._settings.isolation is IsolationLevel.READ_COMMITTED
        aborted = (answer.aborted_transactions or []) if committed else []
        return Fetched(lease.start, records, aborted, partial(self._returned, lease))

    def _returned(self, lease: Lease) -> None:
        with self._changed:
            self._read.returned(lease)
            self._changed.notify_all()

    def _ask_ahead(self) -> None:
        """Send the next request if that works at once; else the next attempt does."""
        with self._changed:
            step = self._read.step()
        if isinstance(step, Ask):
            # The answer in hand must not be lost by what befalls the request behind it.
            with suppress(KafkaError):
                self._ask(step.offset)

    def _ask(self, offset: int) -> None:
        place, settings = self._range.place, self._settings
        connection = self._client.connection(ToLeader(place))
        topic = self._client.topic(place.topic)
        partition = FetchPartition(
            partition=place.partition,
            current_leader_epoch=topic.partitions[place.partition].leader_epoch,
            fetch_offset=offset,
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
        self._asked = connection, connection.send(request, FetchResponse)
        with self._changed:
            self._read.asked()

    def _go_on_after_loss(self) -> None:
        place = self._range.place
        isolation = self._settings.isolation
        earliest = list_offsets(self._client, {place: EARLIEST}, isolation)[place]
        latest = list_offsets(self._client, {place: LATEST}, isolation)[place]
        position = self._read.position
        if earliest <= position <= latest:
            # It moved meanwhile: a new leader that was behind has caught up.
            self._check_patience(None)
            return
        goes_on_at, lost = resumed(position, self._range.end, earliest, latest)
        report(f"{self._range}: {lost}", fail=self._fail)
        with self._changed:
            self._read.skip_to(goes_on_at)

    def _check_patience(self, answer: PartitionData | None) -> None:
        """Counts from the first empty answer: a slow reader is no reason to give up."""
        now = monotonic()
        if self._empty_since is None:
            self._empty_since = now
        if now < self._empty_since + self._client.settings.timeout_ms / 1000:
            return
        ends = "" if answer is None else f"; its readable end is {answer.last_stable_offset}"
        raise ReadTimedOut(
            f"{self._range}: no record from offset {self._read.position} within "
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
