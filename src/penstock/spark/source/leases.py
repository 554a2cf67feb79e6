"""How far the read of an offset range is: what to ask next, and into which buffer. No I/O.

A buffer is leased when an answer is received into it, and stays so until whoever reads the answer
returns it. A retry therefore never writes into bytes that are still being decoded.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request for the records from this offset on, then call `asked`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Receive:
    """Receive the answer into this buffer, then call `answered`, `empty` or `failed`."""

    buffer: int


@dataclass(frozen=True, slots=True)
class WaitForReader:
    """Every buffer is leased: a reader has to return one first."""


@dataclass(frozen=True, slots=True)
class Done:
    """All records of the range have been handed out."""


Step: TypeAlias = Ask | Receive | WaitForReader | Done


@dataclass(frozen=True, slots=True)
class Lease:
    """An answer to read: the offset that was asked for, and the buffer that holds it."""

    buffer: int
    start: int


class RangeRead:
    """Call `step`, do what it says, report what came of it; `returned` may come at any time.

    One request is on its way at a time; it needs no buffer before its answer is received.
    """

    def __init__(self, start: int, end: int, buffers: int) -> None:
        self.position, self._end = start, end
        self._free = list(range(buffers))
        self._leased: set[int] = set()
        self._is_asked = False
        self._receiving: int | None = None

    def step(self) -> Step:
        """What to do now; the same until something is reported."""
        if self.position >= self._end:
            return Done()
        if not self._is_asked:
            return Ask(self.position)
        if self._receiving is None:
            if not self._free:
                return WaitForReader()
            self._receiving = self._free.pop()
        return Receive(self._receiving)

    def asked(self) -> None:
        """The request of `Ask` was sent."""
        assert not self._is_asked, "one request at a time"
        self._is_asked = True

    def answered(self, next_offset: int) -> Lease:
        """The answer holds batches up to `next_offset`; its buffer now belongs to its reader."""
        assert next_offset > self.position, "an answer without progress is empty"
        buffer = self._received()
        self._leased.add(buffer)
        lease = Lease(buffer, self.position)
        self.position = next_offset
        return lease

    def empty(self) -> None:
        """The answer held no batch behind the position."""
        self._free.append(self._received())

    def failed(self) -> None:
        """The request is lost, whether it was sent or not; the position stays."""
        self._is_asked = False
        if self._receiving is not None:
            self._free.append(self._received())

    def skip_to(self, offset: int) -> None:
        """Records before the offset are gone (`failOnDataLoss` is false)."""
        assert not self._is_asked, "the answer that says so was received"
        self.position = offset

    def returned(self, lease: Lease) -> None:
        """The reader is done with the answer: its buffer may be written to again."""
        self._leased.remove(lease.buffer)
        self._free.append(lease.buffer)

    def _received(self) -> int:
        assert self._receiving is not None, "no answer was expected"
        buffer, self._receiving, self._is_asked = self._receiving, None, False
        return buffer
