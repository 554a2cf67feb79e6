"""The progress of reading an offset range: what to fetch next, into which buffer. No I/O.

A buffer is leased when a response is received into it, until the reader of the response returns
it. So a retry never overwrites bytes that are still being decoded.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SendFetch:
    """Send a request for the records from this offset on, then call `sent`."""

    offset: int


@dataclass(frozen=True, slots=True)
class ReceiveInto:
    """Receive the response into this buffer, then call `received`, `empty` or `failed`."""

    buffer: int


@dataclass(frozen=True, slots=True)
class WaitForReader:
    """All buffers are leased: a reader has to return one first."""


@dataclass(frozen=True, slots=True)
class RangeDone:
    """All records of the range have been handed out."""


RangeStep: TypeAlias = SendFetch | ReceiveInto | WaitForReader | RangeDone


@dataclass(frozen=True, slots=True)
class Lease:
    """A response to read: the offset requested, and the buffer that holds it."""

    buffer: int
    start: int


class RangeRead:
    """Call `step`, do what it returns, report the result; `returned` may come at any time.

    One request is in flight at a time; it needs a buffer only when its response is received.
    """

    def __init__(self, start: int, end: int, buffers: int) -> None:
        self.position, self._end = start, end
        self._free = list(range(buffers))
        self._leased: set[int] = set()
        self._is_sent = False
        self._receiving: int | None = None

    def step(self) -> RangeStep:
        """The next step; the same until a result is reported."""
        if self.position >= self._end:
            return RangeDone()
        if not self._is_sent:
            return SendFetch(self.position)
        if self._receiving is None:
            if not self._free:
                return WaitForReader()
            self._receiving = self._free.pop()
        return ReceiveInto(self._receiving)

    def sent(self) -> None:
        """The fetch request was sent."""
        assert not self._is_sent, "one request at a time"
        self._is_sent = True

    def received(self, next_offset: int) -> Lease:
        """The response holds batches up to `next_offset`; its buffer now belongs to its reader."""
        assert next_offset > self.position, "a response without progress is empty"
        buffer = self._finished()
        self._leased.add(buffer)
        lease = Lease(buffer, self.position)
        self.position = next_offset
        return lease

    def empty(self) -> None:
        """The response has no batch after the position."""
        self._free.append(self._finished())

    def failed(self) -> None:
        """The request failed, sent or not; the position stays."""
        self._is_sent = False
        if self._receiving is not None:
            self._free.append(self._finished())

    def skip_to(self, offset: int) -> None:
        """Records before the offset are gone (`failOnDataLoss` is false)."""
        assert not self._is_sent, "the response that reports the loss was received"
        self.position = offset

    def returned(self, lease: Lease) -> None:
        """The reader is done with the response: its buffer may be reused."""
        self._leased.remove(lease.buffer)
        self._free.append(lease.buffer)

    def _finished(self) -> int:
        assert self._receiving is not None, "no response was expected"
        buffer, self._receiving, self._is_sent = self._receiving, None, False
        return buffer
