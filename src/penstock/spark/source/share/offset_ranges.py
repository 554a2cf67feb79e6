"""Sets of offsets as ranges: a share group hands out single records, not all up to an end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class OffsetRanges:
    """Ascending ranges `start <= offset < end` that neither overlap nor touch. Made by `of`."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Self:
        """From ranges in any order, which may overlap."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(each for each in ranges if each[0] < each[1]):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        return cls(tuple(merged))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.ranges)

    @property
    def count(self) -> int:
        """The number of offsets; there may be fewer records."""
        return sum(end - start for start, end in self.ranges)

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self.ranges[-1][1]

    def __or__(self, other: "OffsetRanges") -> "OffsetRanges":
        return OffsetRanges.of((*self.ranges, *other.ranges))

    def __and__(self, other: "OffsetRanges") -> "OffsetRanges":
        return OffsetRanges.of(
            (max(start, first), min(end, last)) for start, end in self for first, last in other
        )

    def __sub__(self, other: "OffsetRanges") -> "OffsetRanges":
        left = list(self.ranges)
        for first, last in other:
            left = [
                piece
                for start, end in left
                for piece in ((start, min(end, first)), (max(start, last), end))
                if piece[0] < piece[1]
            ]
        return OffsetRanges.of(left)

    def part(self, first: int, last: int) -> "OffsetRanges":
        """The offsets from index `first` up to, but without, index `last`."""
        found, at = [], 0
        for start, end in self:
            found.append((max(start, start + first - at), min(end, start + last - at)))
            at += end - start
        return OffsetRanges.of(found)

    def __str__(self) -> str:
        """The text in a checkpoint: `0-99,105`, the last offset included."""
        return ",".join(
            f"{start}-{end - 1}" if end - start > 1 else f"{start}" for start, end in self
        )


def parse_ranges(text: str) -> OffsetRanges:
    """Parse the text of a checkpoint; raises `ValueError` if it is malformed."""
    found = []
    for each in filter(None, text.split(",")):
        first, _, last = each.partition("-")
        found.append((int(first), int(last or first) + 1))
    return OffsetRanges.of(found)
