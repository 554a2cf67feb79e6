"""Compares the records read with those written. Pure.

A value is `RUN NUMBER`; records of other runs are ignored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


def value_of(run: str, number: int) -> bytes:
    return f"{run} {number}".encode()


def number_of(run: str, value: bytes | None) -> int | None:
    """The number in a value; None for a record of another run."""
    name, _, number = (value or b"").partition(b" ")
    return int(number) if name == run.encode() and number.isdigit() else None


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Numbers that were written but not read, read more than once, or read out of order."""

    written: int
    read: int
    missing: tuple[int, ...]
    repeated: tuple[int, ...]
    disordered: tuple[int, ...]

    @property
    def is_good(self) -> bool:
        return not (self.missing or self.repeated or self.disordered)

    def row(self, topic: str) -> dict[str, Any]:
        return {
            "topic": topic,
            "written": self.written,
            "read": self.read,
            "missing": len(self.missing),
            "repeated": len(self.repeated),
            "disordered": len(self.disordered),
            "examples": [*self.missing[:3], *self.repeated[:3], *self.disordered[:3]],
            "good": self.is_good,
        }


def verdict(written: Iterable[int], read: Mapping[int, Sequence[int]]) -> VerificationResult:
    """`read` has the numbers of each partition, in offset order."""
    sent = set(written)
    seen = Counter(number for numbers in read.values() for number in numbers)
    return VerificationResult(
        len(sent),
        seen.total(),
        tuple(sorted(sent - set(seen))),
        tuple(sorted(number for number, count in seen.items() if count > 1)),
        tuple(
            after
            for numbers in read.values()
            for before, after in pairwise(numbers)
            if after < before
        ),
    )
