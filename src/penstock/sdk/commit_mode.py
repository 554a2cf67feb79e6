"""When a consumer commits, and whether it waits for the answer. Pure: time is an argument.

| mode | between batches | at rebalances and at the end |
|---|---|---|
| `AutoCommit` | librdkafka, every `interval_ms` | librdkafka |
| `SyncCommit` | waits, every `every_ms` | waits |
| `AsyncCommit` | does not wait, every `every_ms`; each `sync_every`th commit does | waits |
| `ManualCommit` | when the application says so | never |

A commit that nobody waits for is not tried again: a later one replaces it, and a retry could bring
an older position back.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class AutoCommit:
    """`enable.auto.commit`, for records that were processed: nothing is lost, some may repeat."""

    interval_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class SyncCommit:
    """Waits for each commit."""

    every_ms: int = 0


@dataclass(frozen=True, slots=True)
class AsyncCommit:
    """Does not wait, except now and then, and at the end."""

    every_ms: int = 1_000
    sync_every: int = 10


@dataclass(frozen=True, slots=True)
class ManualCommit:
    """Only `commit()` commits."""


STORE_MS: Final = 100
"""More often than any timer of librdkafka's that makes sense."""

CommitMode: TypeAlias = AutoCommit | SyncCommit | AsyncCommit | ManualCommit


class CommitStep(Enum):
    """What to do now."""

    NOTHING = "nothing"
    STORE = "store"
    """Leave the positions to librdkafka's own timer."""
    SYNC = "sync"
    ASYNC = "async"


class CommitSchedule:
    """Decides between batches."""

    def __init__(self, mode: CommitMode, now_ms: int) -> None:
        self.mode = mode
        self._last_ms = now_ms
        self._commits = 0

    def next(self, now_ms: int) -> CommitStep:
        """Ask when there is something to commit."""
        match self.mode:
            case ManualCommit():
                return CommitStep.NOTHING
            case AutoCommit(interval_ms):
                return self._after(min(interval_ms, STORE_MS), CommitStep.STORE, now_ms)
            case SyncCommit(every_ms):
                return self._after(every_ms, CommitStep.SYNC, now_ms)
            case AsyncCommit(every_ms, sync_every):
                step = CommitStep.ASYNC
                if sync_every and (self._commits + 1) % sync_every == 0:
                    step = CommitStep.SYNC
                return self._after(every_ms, step, now_ms)

    def last(self) -> CommitStep:
        """At the end, and before partitions go to another consumer."""
        match self.mode:
            case ManualCommit():
                return CommitStep.NOTHING
            case AutoCommit():
                return CommitStep.STORE
            case SyncCommit() | AsyncCommit():
                return CommitStep.SYNC

    def _after(self, every_ms: int, step: CommitStep, now_ms: int) -> CommitStep:
        if now_ms - self._last_ms < every_ms:
            return CommitStep.NOTHING
        self._last_ms = now_ms
        self._commits += 1
        return step
