"""When a consumer commits."""

import pytest

from penstock.sdk.commit_mode import (
    AsyncCommit,
    AutoCommit,
    CommitSchedule,
    CommitStep,
    ManualCommit,
    SyncCommit,
)


@pytest.mark.row("A041", "A183")
def test_some_async_commits_and_the_last_one_are_synchronous() -> None:
    schedule = CommitSchedule(AsyncCommit(every_ms=10, sync_every=3), now_ms=0)
    steps = [schedule.next(now_ms).name for now_ms in range(0, 70, 5)]
    assert [each for each in steps if each != "NOTHING"] == ["ASYNC", "ASYNC", "SYNC"] * 2
    assert schedule.last() is CommitStep.SYNC


def test_other_modes_commit_as_documented() -> None:
    auto = CommitSchedule(AutoCommit(), 0)
    assert [auto.next(now_ms) for now_ms in (0, 99, 100)] == [
        CommitStep.NOTHING,
        CommitStep.NOTHING,
        CommitStep.STORE,
    ]
    assert auto.last() is CommitStep.STORE
    sync = CommitSchedule(SyncCommit(), 0)
    assert (sync.next(0), sync.last()) == (CommitStep.SYNC, CommitStep.SYNC)
    manual = CommitSchedule(ManualCommit(), 0)
    assert (manual.next(0), manual.last()) == (CommitStep.NOTHING, CommitStep.NOTHING)
