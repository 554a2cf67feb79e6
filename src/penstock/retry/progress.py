"""Tracks which records of a delay partition are done, though older ones still wait.

Offsets are grouped in chunks of 4,096. Each chunk has bitmaps of the records that are done, stored
as one record of the compacted state topic. The group's committed offset, the floor, is the start of
the lowest chunk with a pending record; bitmaps below it are deleted.

Changes are staged while a transaction writes them, and take effect once it is committed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from penstock.client.leader_logs import LeaderLog
from penstock.retry.history import History, UnreadableState
from penstock.types import Offset, Uuid, parse_uuid, uuid_text

CHUNK: Final = 4096
FLOOR: Final = "floor"
_VERSION: Final = b"\x01"
_SIZE_BYTES: Final = 2


class Outcome(Enum):
    """How a record was finished."""

    DELIVERED = "delivered"
    """Delivered to its target, or as a dead letter."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """The records of a chunk that are done: bit i stands for its i-th offset."""

    delivered: int = 0
    cancelled: int = 0

    @property
    def done(self) -> int:
        return self.delivered | self.cancelled

    def with_bit(self, bit: int, outcome: Outcome) -> "Bitmaps":
        if outcome is Outcome.DELIVERED:
            return Bitmaps(self.delivered | 1 << bit, self.cancelled)
        return Bitmaps(self.delivered, self.cancelled | 1 << bit)

    def encode(self) -> bytes:
        delivered = self.delivered.to_bytes((self.delivered.bit_length() + 7) // 8, "little")
        cancelled = self.cancelled.to_bytes((self.cancelled.bit_length() + 7) // 8, "little")
        return _VERSION + len(delivered).to_bytes(_SIZE_BYTES, "big") + delivered + cancelled

    @classmethod
    def decode(cls, value: bytes) -> "Bitmaps":
        if value[:1] != _VERSION:
            raise UnreadableState(
                f"progress of version {value[:1].hex() or 'none'} is not known here: "
                "a newer Penstock wrote it"
            )
        begin = 1 + _SIZE_BYTES
        end = begin + int.from_bytes(value[1:begin], "big")
        most = begin + 2 * CHUNK // 8
        if not begin <= end <= len(value) <= most:
            raise UnreadableState(f"progress of {len(value)} bytes is broken")
        return cls(
            int.from_bytes(value[begin:end], "little"), int.from_bytes(value[end:], "little")
        )


@dataclass(frozen=True, slots=True)
class StateKey:
    """A key of the state topic: a chunk of a partition, or None for its floor.

    It has the topic's id, because a recreated topic of the same name starts from nothing.
    """

    topic_id: Uuid
    partition: int
    chunk: int | None

    def encode(self) -> bytes:
        last = FLOOR if self.chunk is None else str(self.chunk)
        return f"{uuid_text(self.topic_id)}/{self.partition}/{last}".encode()

    @classmethod
    def decode(cls, key: bytes) -> "StateKey":
        try:
            topic, partition, last = key.decode().split("/")
            return cls(parse_uuid(topic), int(partition), None if last == FLOOR else int(last))
        except ValueError:
            raise UnreadableState(f"the key {key!r} of the state topic is broken") from None


def decode_floor(value: bytes | None) -> Offset:
    try:
        return Offset(int(value or b"0"))
    except ValueError:
        raise UnreadableState(f"the floor {value!r} of the state topic is broken") from None


class Progress:
    """Tracks which records of one partition are done."""

    def __init__(
        self, floor: Offset, chunks: Mapping[int, Bitmaps], history: History | None = None
    ) -> None:
        """`floor` is the group's committed offset; everything before it is done."""
        self._start = floor
        self.history = history or History()
        self._chunks = {number: bits for number, bits in chunks.items() if _end(number) > floor}
        self._pending: dict[int, int] = {}
        """Pending records by chunk, of those that were read."""
        self._read_to = floor
        self._staged: dict[int, Bitmaps] = {}
        self._staged_done: dict[int, int] = {}

    @property
    def read_to(self) -> Offset:
        """The next offset to read; records before it are known."""
        return self._read_to

    @property
    def end(self) -> Offset:
        """All records that are done have lower offsets."""
        marked = max((chunk for chunk, bits in self._chunks.items() if bits.done), default=None)
        if marked is None:
            return self._start
        return Offset(max(self._start, marked * CHUNK + self._bits(marked).done.bit_length()))

    @property
    def pending(self) -> int:
        """The number of pending records, of those that were read."""
        return sum(self._pending.values())

    def is_done(self, offset: int) -> bool:
        """Whether a committed transaction has finished the record."""
        if offset < self._start:
            return True
        return bool(self._bits(offset // CHUNK).done >> offset % CHUNK & 1)

    def outcome(self, offset: int) -> Outcome | None:
        """None: it waits, or was finished so long ago that its bitmap is gone."""
        bits, bit = self._bits(offset // CHUNK), 1 << offset % CHUNK
        if bits.cancelled & bit:
            return Outcome.CANCELLED
        return Outcome.DELIVERED if bits.delivered & bit else None

    def waits(self, offset: int, count: int = 1) -> None:
        """Count a read record as pending; `count`: several of its chunk, from a warm index."""
        chunk = offset // CHUNK
        self._pending[chunk] = self._pending.get(chunk, 0) + count

    def read(self, to: Offset) -> None:
        """Everything before this offset was read, including offsets without a record."""
        self._read_to = max(self._read_to, to)

    def lost(self, log: LeaderLog) -> list[range]:
        """Offsets of known records where the log has others now, or none.

        Where epochs are unknown, a loss shows only if the log ends too early.
        """
        found = self.history.lost(log) if log.starts else []
        unknown = range(max(log.end, self.history.end if log.starts else 0), self.end)
        return [*found, unknown] if unknown else found

    def rewind(self, lost: Sequence[range]) -> None:
        """Forget records at these offsets, which the log has lost: it has other records there now.
        Staged.

        Records that are done and still in the log stay done.
        """
        to = min(each.start for each in lost)
        # Of chunks below the floor, only those with surviving records: a log that lost everything
        # may have had any number of chunks.
        for chunk in {*self._chunks, *_chunks_between(lost, self._start)}:
            if _end(chunk) > to:
                bits, gone = self._bits(chunk), 0
                for each in lost:
                    gone |= _mask(chunk, each.start, each.stop)
                delivered = bits.delivered | _mask(chunk, 0, self._start) & ~bits.cancelled
                self._staged[chunk] = Bitmaps(delivered & ~gone, bits.cancelled & ~gone)
        self._start = self._read_to = Offset(min(self._start, to))
        self.history.forget(lost)

    def stage(self, offset: int, outcome: Outcome) -> bool:
        """The open transaction finishes this record; False if it was finished before."""
        chunk, bit = divmod(offset, CHUNK)
        bits = self._staged.get(chunk) or self._bits(chunk)
        if offset < self._start or bits.done >> bit & 1:
            return False
        self._staged[chunk] = bits.with_bit(bit, outcome)
        self._staged_done[chunk] = self._staged_done.get(chunk, 0) + 1
        return True

    def staged_floor(self) -> Offset:
        """The offset to commit with the open transaction."""
        left = [
            chunk
            for chunk, count in self._pending.items()
            if count > self._staged_done.get(chunk, 0)
        ]
        lowest = Offset(min(left) * CHUNK) if left else self._read_to
        return max(self._start, min(lowest, self._read_to))

    def staged_values(self) -> Iterator[tuple[int, bytes | None]]:
        """The chunks and bitmaps that the open transaction writes; None: the chunk is deleted."""
        floor = self.staged_floor()
        for chunk in sorted(self._staged.keys() | self._passed(floor)):
            passed = _end(chunk) <= floor
            staged = self._staged.get(chunk, _NOTHING)
            # Write a cancelled record's bitmap once even if the chunk goes: the canceller reads it.
            if not passed or staged.cancelled:
                yield chunk, staged.encode()
            if passed and (chunk in self._chunks or staged.cancelled):
                yield chunk, None

    def commit(self) -> None:
        floor = self.staged_floor()
        self._chunks |= self._staged
        for chunk, count in self._staged_done.items():
            self._pending[chunk] = self._pending.get(chunk, 0) - count
            if self._pending[chunk] <= 0:
                del self._pending[chunk]
        for chunk in list(self._passed(floor)):
            del self._chunks[chunk]
        self._start = floor
        self.abort()

    def abort(self) -> None:
        """Drop the staged changes: the transaction did not commit."""
        self._staged, self._staged_done = {}, {}

    def _passed(self, floor: int) -> Iterable[int]:
        return {chunk for chunk in self._chunks if _end(chunk) <= floor}

    def _bits(self, chunk: int) -> Bitmaps:
        return self._chunks.get(chunk, _NOTHING)


_NOTHING: Final = Bitmaps()


def _end(chunk: int) -> int:
    return (chunk + 1) * CHUNK


def _chunks_between(lost: Sequence[range], end: int) -> Iterator[int]:
    """The chunks with offsets that are not lost, after the first lost one and before `end`."""
    ordered = sorted(lost, key=lambda each: each.start)
    for each, following in zip(ordered, [*ordered[1:], range(end, end)], strict=True):
        rest = range(each.stop, min(following.start, end))
        if rest:
            yield from range(rest[0] // CHUNK, rest[-1] // CHUNK + 1)


def _mask(chunk: int, first: int, end: int) -> int:
    """The bits of a chunk for offsets from `first` to `end`."""
    low, high = (min(max(0, each - chunk * CHUNK), CHUNK) for each in (first, end))
    return (1 << high) - (1 << low) if low < high else 0
