"""When a consumer commits, and whether it waits for the response. Pure: time is an argument.

| mode | between batches | at rebalances and at the end |
|---|---|---|
| `AutoCommit` | librdkafka, every `interval_ms` | librdkafka |
| `SyncCommit` | waits, every `every_ms` | waits |
| `AsyncCommit` | does not wait, every `every_ms`; each `sync_every`th commit does | waits |
| `ManualCommit` | when the application says so | never |

A commit that does not wait is not retried: a later one replaces it, and a retry could bring back an
older position.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class AutoCommit:
    """`enable.auto.commit`, but only for processed records: nothing is lost, some may repeat."""

    interval_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class SyncCommit:
    """Waits for each commit."""

    every_ms: int = 0


@dataclass(frozen=True, slots=True)
class AsyncCommit:
    """Does not wait, except for each `sync_every`th commit and at the end."""

    every_ms: int = 1_000
    sync_every: int = 10


@dataclass(frozen=True, slots=True)
class ManualCommit:
    """Only `commit()` commits."""


STORE_MS: Final = 100
"""How often offsets are stored; shorter than any sensible commit interval of librdkafka."""

CommitMode: TypeAlias = AutoCommit | SyncCommit | AsyncCommit | ManualCommit


class CommitStep(Enum):
    """The action that a schedule decides on."""

    NOTHING = "nothing"
    STORE = "store"
    """Store the offsets; librdkafka commits them by its own timer."""
    SYNC = "sync"
    ASYNC = "async"


class CommitSchedule:
    """Decides the step between batches, and the last one."""

    def __init__(self, mode: CommitMode, now_ms: int) -> None:
        self.mode = mode
        self._last_ms = now_ms
        self._commits = 0

    def next(self, now_ms: int) -> CommitStep:
        """The step between batches; call it only when there is something to commit."""
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
        """The step at the end, and before partitions go to another consumer."""
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
