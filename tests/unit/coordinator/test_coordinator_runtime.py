"""The runtime: appends before replies, failed appends, expiries, and lost leadership."""

import gc
import weakref
from itertools import pairwise
from typing import Any

import pytest

from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.group.records import GroupFormat
from penstock.coordinator.group.result import GroupResult
from penstock.coordinator.result import CoordinatorResult, Now
from penstock.coordinator.runtime import EXPIRIES_A_TURN, CoordinatorRuntime
from penstock.errors import ErrorCode
from penstock.testing.loop import ManualLoop
from support.groups.coordinator_stage import TOPIC_PARTITION, Stage, code
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_reply_waits_until_its_records_are_committed(stage: Stage) -> None:
    stage.log.commits = False
    pending = stage.commit(5)
    assert not stage.is_ready(pending)
    stage.log.commit()
    assert stage.is_ready(pending)
    assert pending.reply == (None,)


def test_an_offset_is_not_fetched_before_it_is_replicated(stage: Stage) -> None:
    stage.log.commits = False
    stage.commit(5)
    pending = stage.groups.fetch(GROUP, None)
    assert not stage.is_ready(pending)
    stage.log.commit()
    assert stage.is_ready(pending)


def test_a_commit_that_cannot_be_written_changes_nothing(stage: Stage) -> None:
    stage.commit(5)
    stage.log.refusal = CoordinatorNotAvailable("too few replicas")
    assert code(stage.commit(6)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.log.refusal = None
    assert stage.groups.fetch(GROUP, None).reply == {TOPIC_PARTITION: CommittedOffset(5)}


def test_assignments_that_cannot_be_written_are_not_handed_out(stage: Stage) -> None:
    stage.join()
    stage.loop.advance(1)
    stage.log.refusal = CoordinatorNotAvailable("too few replicas")
    request = GroupSync(member_id="a", generation=1, assignments={"a": b"all"})
    assert code(stage.groups.sync(GROUP, request)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (
        stage.groups.shards()[0].classic_groups[GROUP].state
        is ClassicGroupState.COMPLETING_REBALANCE
    )
    stage.log.refusal = None
    assert stage.groups.sync(GROUP, request).reply is not None


def test_a_repeated_sync_waits_until_the_assignments_are_committed(stage: Stage) -> None:
    """Otherwise a fail-over could take back what the member has been told."""
    stage.join()
    stage.loop.advance(1)
    stage.log.commits = False
    request = GroupSync(member_id="a", generation=1, assignments={"a": b"all"})
    first, again = stage.groups.sync(GROUP, request), stage.groups.sync(GROUP, request)
    assert not stage.is_ready(first)
    assert not stage.is_ready(again)
    stage.log.commit()
    assert stage.is_ready(first)
    assert stage.is_ready(again)


def test_a_name_that_fits_into_no_record_is_refused_and_changes_nothing(stage: Stage) -> None:
    """A member id is made of the client's own name, which may have the greatest length already."""
    long = "g" * 32768
    refused = stage.commit(5, long)
    assert code(refused) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "too long" in str(refused.reply)
    assert stage.groups.fetch(long, None).reply == {}


def test_an_expiry_is_retried_until_it_can_be_written(stage: Stage) -> None:
    stage.join()
    stage.loop.advance(1)
    stage.groups.sync(GROUP, GroupSync(member_id="a", generation=1, assignments={"a": b"all"}))
    stage.log.refusal = CoordinatorNotAvailable("too few replicas")
    stage.loop.advance(11)
    assert stage.groups.shards()[0].classic_groups[GROUP].state is ClassicGroupState.STABLE
    stage.log.refusal = None
    stage.loop.advance(1)
    assert stage.groups.shards()[0].classic_groups[GROUP].state is ClassicGroupState.EMPTY


class AlwaysDue:
    """A shard with an expiry due at any time."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.expired_at: list[int] = []

    def next_deadline_ms(self) -> int | None:
        return self._clock.monotonic_ms() if len(self.expired_at) < 3 * EXPIRIES_A_TURN else None

    def expire(self, now: Now) -> CoordinatorResult[Any, Any]:
        self.expired_at.append(now.steady_ms)
        return CoordinatorResult()

    def on_loaded(self, now: Now) -> None:
        """The log was empty."""


def test_many_expiries_do_not_starve_other_callbacks() -> None:
    loop = ManualLoop()
    shard = AlwaysDue(LoopClock(loop))
    runtime: CoordinatorRuntime[Any, Any] = CoordinatorRuntime(
        "due",
        lambda _: shard,
        GroupFormat(),
        loop=loop,
        clock=LoopClock(loop),
        on_reply=lambda _: None,
    )
    runtime.lead(0, MemoryLog())
    turns: list[int] = []

    def other() -> None:
        turns.append(len(shard.expired_at))
        if len(turns) < 5:
            loop.call_soon(other)

    loop.call_soon(other)
    loop.advance()
    assert max(b - a for a, b in pairwise(turns)) <= EXPIRIES_A_TURN
    assert len(shard.expired_at) == 3 * EXPIRIES_A_TURN


@pytest.mark.parametrize("timeout_ms", [-5, 0, 1])
def test_an_absent_static_member_does_not_keep_the_coordinator_busy(
    stage: Stage, timeout_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the only member: the join phase restarts until it returns or its session ends."""
    for member, instance in (("a", "i1"), ("b", None)):
        stage.groups.join(GROUP, joining(member, instance, timeout_ms))
    stage.loop.advance(1)
    assignments = {"a": b"x", "b": b"y"}
    for member, instance in (("a", "i1"), ("b", None)):
        stage.groups.sync(
            GROUP,
            GroupSync(
                member_id=member, instance_id=instance, generation=1, assignments=assignments
            ),
        )
    shard = stage.groups.shards()[0]
    assert shard.classic_groups[GROUP].state is ClassicGroupState.STABLE
    stage.groups.leave(GROUP, (LeavingMember("b"),))
    rounds, expire = list[Now](), shard.expire

    def counted(now: Now) -> GroupResult:
        rounds.append(now)
        assert len(rounds) < 100, "the loop is blocked"
        return expire(now)

    monkeypatch.setattr(shard, "expire", counted)
    stage.loop.advance(8)
    assert shard.classic_groups[GROUP].state is ClassicGroupState.PREPARING_REBALANCE
    assert len(rounds) <= 9
    stage.loop.advance(2)
    assert shard.classic_groups[GROUP].state is ClassicGroupState.EMPTY


def joining(member: str, instance: str | None, timeout_ms: int) -> GroupJoin:
    return GroupJoin(
        new_member_id=member,
        instance_id=instance,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=timeout_ms,
        protocol_type="consumer",
        protocols=(ProtocolMetadata("range", b""),),
    )


def test_pending_replies_fail_when_the_coordinator_moves(stage: Stage) -> None:
    pending = stage.join()
    assert pending.reply is None
    stage.groups.runtime.resign(0)
    assert stage.is_ready(pending)
    assert code(pending) is ErrorCode.NOT_COORDINATOR
    assert code(stage.commit(5)) is ErrorCode.NOT_COORDINATOR
    stage.loop.advance(100)  # no timer of the old shard fires
    assert stage.loop.waiting == 0


def test_the_reply_of_a_disconnected_client_is_released(stage: Stage) -> None:
    pending = weakref.ref(stage.commit(5))
    gc.collect()
    assert pending() is None


def test_uncommitted_requests_fail_when_leadership_is_lost(stage: Stage) -> None:
    before = stage.commit(4)
    stage.log.commits = False
    committed, joining = stage.commit(5), stage.join()
    stage.groups.runtime.resign(0)
    assert before.reply == (None,)
    assert code(committed) is ErrorCode.NOT_COORDINATOR
    assert code(joining) is ErrorCode.NOT_COORDINATOR
    assert stage.is_ready(committed)
    assert code(stage.commit(6)) is ErrorCode.NOT_COORDINATOR


def test_a_coordinator_that_leads_again_does_not_confirm_failed_requests(stage: Stage) -> None:
    stage.log.commits = False
    pending = stage.commit(5)
    stage.groups.runtime.resign(0)
    stage.groups.runtime.lead(0, stage.log)
    stage.log.commit()
    assert code(pending) is ErrorCode.NOT_COORDINATOR
