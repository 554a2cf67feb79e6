"""The leader epochs of a log, and the offsets that each wrote (KIP-101, KIP-279, KIP-320).

Replicas with different logs find the last offset they share by the end offsets of epochs; the high
watermark is of no use for that, since it lags behind the end.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from penstock.log.checkpoint import decode_rows, encode_rows, integers

EPOCHS = "leader-epoch-checkpoint"

UNDEFINED = (-1, -1)
"""The answer when an epoch's end is unknown: `(epoch, end offset)`."""


class EpochStart(NamedTuple):
    """The first offset that an epoch's leader wrote."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log, oldest first; epochs and start offsets both strictly ascend."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries: list[EpochStart] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def latest(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Begin `epoch` at `start_offset`; says whether anything changed.

        Entries that contradict the new one are dropped: it comes from the leader, and is newer.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot begin at offset {start_offset}")
        if self.entries:
            latest = self.entries[-1]
            if epoch == latest.epoch and start_offset >= latest.start_offset:
                return False
        while self.entries and (
            self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochStart(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ended, as OffsetForLeaderEpoch.

        An epoch before all known ones ended where the first known one begins.
        """
        if epoch < 0 or not self.entries:
            return UNDEFINED
        if epoch == self.entries[-1].epoch:
            return epoch, log_end_offset
        higher = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        if higher == len(self.entries):
            return UNDEFINED
        floor = self.entries[higher - 1].epoch if higher else epoch
        return floor, self.entries[higher].start_offset

    def epoch_for(self, offset: int) -> int | None:
        """The epoch that wrote `offset`; None before the first known one."""
        higher = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[higher - 1].epoch if higher else None

    def shared_end(self, other: "LeaderEpochs", start_offset: int, end_offset: int) -> int:
        """The first offset where this log and the `other` one differ, at most `end_offset`.

        Both are known from `start_offset` on. Records of the same epoch at the same offset are
        equal.
        """
        starts = {entry.start_offset for entry in [*self.entries, *other.entries]}
        for offset in sorted({start_offset, *starts}):
            if start_offset <= offset < end_offset and (
                self.epoch_for(offset) != other.epoch_for(offset)
            ):
                return offset
        return end_offset

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at or after `end_offset`; says whether anything changed."""
        kept = len(self.entries)
        while kept and self.entries[kept - 1].start_offset >= end_offset:
            kept -= 1
        changed = kept < len(self.entries)
        del self.entries[kept:]
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs before `start_offset`; the epoch that spans it now begins there."""
        spanning = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if not spanning:
            return False
        first = EpochStart(self.entries[spanning - 1].epoch, start_offset)
        changed = spanning > 1 or self.entries[0] != first
        self.entries[:spanning] = [first]
        return changed

    def encode(self) -> bytes:
        """The text of `leader-epoch-checkpoint`."""
        return encode_rows(f"{epoch} {start}" for epoch, start in self.entries)

    @classmethod
    def decode(cls, data: bytes, what: str = EPOCHS) -> "LeaderEpochs":
        """The epochs that `data` lists; `CorruptFile` when it is not such a file."""
        return cls(EpochStart(*integers(row, 2, what)) for row in decode_rows(data, what))
