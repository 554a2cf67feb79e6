"""Fetches the records of an offset range as raw bytes, one request ahead of their reader."""

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
from penstock.client.route import ToBroker, ToLeader
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import HEADER_BYTES, LENGTH_END, CorruptBatch
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.connection import BlockingConnection, SentRequest
from penstock.spark.source.data_loss import report, resumed
from penstock.spark.source.lookup import list_offsets
from penstock.spark.source.range_read import (
    Lease,
    RangeDone,
    RangeRead,
    RangeStep,
    ReceiveInto,
    SendFetch,
    WaitForReader,
)
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.settings import FetchSettings
from penstock.types import NO_UUID, BrokerId, Buffer
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

READ_AHEAD = 1
"""Responses that wait to be decoded, besides the one being decoded and the one being received."""
_SLACK_BYTES = 64 << 10
"""Room for the rest of a response, and for a last batch that exceeds the limit."""
_RETRY_ON = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_NO_FOLLOWER = -1
_START = Struct(">qi")
_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


class FetchedBytes(NamedTuple):
    """Bytes of whole batches. The reader must call `done`, after which the bytes are reused."""

    start: int
    """The offset requested; the first batch may begin before it."""
    records: memoryview
    aborted: list[AbortedTransaction]
    done: Callable[[], None]


class ReadTimedOut(KafkaError):
    """No record came within kafka.default.api.timeout.ms.

    Its error code is not retriable, so that it ends all retries.
    """


class RangeFetch:
    """Iterates over the responses that cover a range, in one thread; any thread may close it.

    The next request is sent before a response is handed out, so that the broker works meanwhile.
    Three buffers take turns: one is decoded, one waits, one is filled. `done` of a response may be
    called by another thread, and in any order.
    """

    def __init__(
        self, client: BlockingClient, wanted: OffsetRange, settings: FetchSettings, *, fail: bool
    ) -> None:
        self._client, self._range, self._settings, self._fail = client, wanted, settings, fail
        self._topic_id = wanted.topic_id
        self._rack = settings.rack
        self._follower: BrokerId | None = None
        """The follower in this rack that the leader named (KIP-392); None: the leader is read."""
        self._in_flight: tuple[BlockingConnection, SentRequest[FetchResponse]] | None = None
        count, size = READ_AHEAD + 2, settings.partition_bytes + _SLACK_BYTES
        # numpy's memory is used only as it is written to, and most ranges are small.
        self._buffers = [np.empty(size, np.uint8).data for _ in range(count)]
        self._read = RangeRead(wanted.start, wanted.end, count)
        self._changed = Condition()
        """Guards `_read`: readers return buffers from their own thread."""
        self._is_closed = False
        self._empty_since: float | None = None

    def __iter__(self) -> Iterator[FetchedBytes]:
        while not isinstance(self._step(), RangeDone):
            fetched = self._existing()
            if fetched is not None:
                self._send_ahead()
                yield fetched

    def close(self) -> None:
        """End the iteration, even while it waits for a broker or a reader."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._client.close()

    def _step(self) -> RangeStep:
        """The next step; waits for a free buffer."""
        with self._changed:
            while isinstance(step := self._read.step(), WaitForReader):
                if self._is_closed:
                    raise ConnectionFailed("the read was closed")
                self._changed.wait()
        return step

    def _existing(self) -> FetchedBytes | None:
        """The next response; None if it holds no new batch, or the topic was deleted and that is no
        error: then the range ends. That takes the whole timeout: a broker may not have heard of a
        topic yet.
        """
        try:
            return self._client.retrying(
                self._next, retry_on=_RETRY_ON if self._fail else RETRIABLE
            )
        except BrokerRefused as error:
            if self._fail or error.code not in _GONE:
                raise
            report(f"{self._range}: its topic was deleted", fail=False)
            with self._changed:
                self._read.skip_to(self._range.end)
            return None

    def _next(self) -> FetchedBytes | None:
        """The next response; None if it holds no new batch."""
        try:
            if isinstance(step := self._step(), SendFetch):
                self._send(step.offset)
                step = self._step()
            if isinstance(step, RangeDone):
                return None
            assert isinstance(step, ReceiveInto), "a request is in flight"
            return self._received(self._buffers[step.buffer])
        except BaseException:
            self._in_flight = None
            with self._changed:
                self._read.failed()
            self._leave_follower()
            raise

    def _received(self, into: memoryview) -> FetchedBytes | None:
        assert self._in_flight is not None, "a request is in flight"
        connection, ticket = self._in_flight
        limit_ms = self._settings.max_wait_ms + self._client.settings.request_timeout_ms
        response = connection.receive(ticket, timeout_ms=limit_ms, into=into)
        self._in_flight = None
        position = self._read.position
        try:
            partition = _partition(response, self._range, position)
        except BrokerRefused as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            with self._changed:
                self._read.empty()
            if not self._leave_follower():
                self._continue_after_loss()
            return None
        found = None if partition is None else partition.records
        assert isinstance(found, Buffer | None), "a decoded response holds its records"
        records = memoryview(found or b"")
        behind = next_offset(records)
        if partition is None or behind is None or behind <= position:
            with self._changed:
                self._read.empty()
            if partition is not None and partition.preferred_read_replica != _NO_FOLLOWER:
                self._follower = BrokerId(partition.preferred_read_replica)
            elif not self._leave_follower():
                self._check_patience(partition)
            return None
        with self._changed:
            lease = self._read.received(behind)
        self._empty_since = None
        committed = self._settings.isolation is IsolationLevel.READ_COMMITTED
        aborted = (partition.aborted_transactions or []) if committed else []
        return FetchedBytes(lease.start, records, aborted, partial(self._returned, lease))

    def _leave_follower(self) -> bool:
        """Read the rest of the range from the leader, if a follower was read: it may lag, or be
        gone, and the leader would name it again.
        """
        is_left = self._follower is not None
        if is_left:
            self._follower, self._rack = None, ""
        return is_left

    def _returned(self, lease: Lease) -> None:
        with self._changed:
            self._read.returned(lease)
            self._changed.notify_all()

    def _send_ahead(self) -> None:
        """Send the next request if possible; if it fails, the next attempt sends it."""
        with self._changed:
            step = self._read.step()
        if isinstance(step, SendFetch):
            # A failure of this request must not lose the response in hand.
            with suppress(KafkaError):
                self._send(step.offset)

    def _send(self, offset: int) -> None:
        tp, settings = self._range.topic_partition, self._settings
        topic = self._client.topic(tp.topic)
        if self._topic_id == NO_UUID:
            self._topic_id = topic.id
        elif topic.id not in {self._topic_id, NO_UUID}:
            report(f"{self._range}: its topic was recreated", fail=self._fail)
            with self._changed:
                self._read.skip_to(self._range.end)
            return
        follower = self._follower
        connection = self._client.connection(
            ToLeader(tp) if follower is None else ToBroker(follower)
        )
        partition = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=topic.partitions[tp.partition].leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=settings.partition_bytes,
        )
        request = FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.partition_bytes,
            isolation_level=settings.isolation,
            topics=[FetchTopic(topic=tp.topic, topic_id=topic.id, partitions=[partition])],
            rack_id=self._rack,
        )
        self._in_flight = connection, connection.send(request, FetchResponse)
        with self._changed:
            self._read.sent()

    def _continue_after_loss(self) -> None:
        tp = self._range.topic_partition
        isolation = self._settings.isolation
        earliest = list_offsets(self._client, {tp: EARLIEST}, isolation)[tp]
        latest = list_offsets(self._client, {tp: LATEST}, isolation)[tp]
        position = self._read.position
        if earliest <= position <= latest:
            # The log's end moved meanwhile: a new leader has caught up.
            self._check_patience(None)
            return
        position_after, lost = resumed(position, self._range.end, earliest, latest)
        report(f"{self._range}: {lost}", fail=self._fail)
        with self._changed:
            self._read.skip_to(position_after)

    def _check_patience(self, partition: PartitionData | None) -> None:
        """Raise `ReadTimedOut` if no record came since the first empty response.

        Time in which the reader is slow does not count.
        """
        now = monotonic()
        if self._empty_since is None:
            self._empty_since = now
        if now < self._empty_since + self._client.settings.timeout_ms / 1000:
            return
        ends = "" if partition is None else f"; its readable end is {partition.last_stable_offset}"
        raise ReadTimedOut(
            f"{self._range}: no record from offset {self._read.position} within "
            f"kafka.default.api.timeout.ms, {self._client.settings.timeout_ms} ms{ends}"
        )


def next_offset(records: memoryview) -> int | None:
    """The offset after the last whole batch; None without one."""
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


def _partition(response: FetchResponse, wanted: OffsetRange, position: int) -> PartitionData | None:
    """The partition's part of the response; None if its client is over its quota, and gets the
    records later.
    """
    about = f"fetch of {wanted.topic_partition} from {position}"
    check(response.error_code, about)
    if not response.responses:
        return None
    for topic in response.responses:
        for each in topic.partitions:
            if each.partition_index == wanted.topic_partition.partition:
                check(each.error_code, about)
                return each
    raise BrokerRefused(ErrorCode.UNKNOWN_SERVER_ERROR, about, "the response leaves it out")
