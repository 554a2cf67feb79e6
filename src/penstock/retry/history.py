"""Tracks which leader epochs wrote the records read from a partition. No I/O.

A record of an epoch stays the same at its offset, unless the leader lost the end of its log. So if
the log has another epoch at an offset than when a record was read, it has another record there.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from penstock.client.leader_logs import LeaderLog
from penstock.errors import KafkaError

HEADER: Final = "penstock-epochs"
"""Header of the floor's record in the state topic. Text: the version, how often records were lost,
and `EPOCH:FIRST-LAST` for each run. Older versions write floors without it.
"""
VERSION: Final = "1"
MOST: Final = 32
"""How many runs are kept, the newest."""


class UnreadableState(KafkaError):
    """A record of the state topic was written by a newer version, or is broken."""


class EpochRun(NamedTuple):
    """Offsets of the first and last record read of an epoch."""

    epoch: int
    first: int
    last: int


class History:
    """The runs of one partition, oldest first, without gaps that matter."""

    def __init__(self, runs: Iterable[EpochRun] = (), rewinds: int = 0) -> None:
        self.runs = list(runs)
        self.rewinds = rewinds
        """How often the log lost records: older indexes are useless."""

    @property
    def latest(self) -> int:
        """The epoch of the last record; -1: unknown."""
        return self.runs[-1].epoch if self.runs else -1

    @property
    def first(self) -> int | None:
        return self.runs[0].first if self.runs else None

    @property
    def end(self) -> int:
        """Nothing is known from this offset on."""
        return self.runs[-1].last + 1 if self.runs else 0

    def seen(self, epoch: int, first: int, last: int) -> None:
        """Note records that were read; records of earlier epochs are already noted."""
        if epoch < max(self.latest, 0):
            return
        if epoch == self.latest:
            if last > self.runs[-1].last:
                self.runs[-1] = self.runs[-1]._replace(last=last)
            return
        if first >= self.end:  # else the log lost known records: its leader knows how many
            self.runs = [*self.runs, EpochRun(epoch, first, last)][-MOST:]

    def adopt(self, log: LeaderLog, end: int) -> None:
        """Everything before `end` was read from this log."""
        bounds = [*log.starts, (-1, max(log.end, end))]
        runs = [
            EpochRun(epoch, first, min(following, end) - 1)
            for (epoch, first), (_, following) in pairwise(bounds)
        ]
        self.runs = [each for each in runs if each.first <= each.last][-MOST:]

    def lost(self, log: LeaderLog) -> list[range]:
        """Offsets where the log has other records now, or none; not those that it deleted."""
        end = max(log.end, self.end)
        bounds = [*log.starts, (-1, log.end), (-1, end)]
        found = []
        for run in self.runs:
            for (epoch, first), (_, following) in pairwise(bounds):
                differs = range(max(run.first, first), min(run.last + 1, following))
                if differs and epoch != run.epoch:
                    found.append(differs)
        return found

    def forget(self, lost: Sequence[range]) -> None:
        """Forget what the log has lost."""
        self.rewinds += 1
        first = min(each.start for each in lost)
        kept = [each._replace(last=min(each.last, first - 1)) for each in self.runs]
        self.runs = [each for each in kept if each.first <= each.last]

    def encode(self) -> bytes:
        runs = (f"{epoch}:{first}-{last}" for epoch, first, last in self.runs)
        return " ".join([VERSION, str(self.rewinds), *runs]).encode()

    @classmethod
    def decode(cls, value: bytes) -> "History":
        try:
            version, *rest = value.decode().split()
            if version != VERSION:
                raise UnreadableState(
                    f"epochs of version {version} are not known here: a newer Penstock wrote them"
                )
            rewinds, *runs = rest
            return cls((_run(each) for each in runs), int(rewinds))
        except ValueError:
            raise UnreadableState(f"the epochs {value!r} of the state topic are broken") from None


def _run(text: str) -> EpochRun:
    epoch, _, span = text.partition(":")
    first, _, last = span.partition("-")
    return EpochRun(int(epoch), int(first), int(last))
