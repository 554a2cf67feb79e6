"""The runtime: appends before replies, failed appends, loading, and lost leadership."""

import gc
import weakref
from itertools import pairwise
from typing import Any

import pytest

from group_transcript import GROUP, LoopClock, MemoryLog, coordinator
from penstock.config.group import GroupConfig
from penstock.coordinator.errors import CoordinatorNotAvailable, RecordTooLarge
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.records import GroupFormat
from penstock.coordinator.group.result import GroupResult
from penstock.coordinator.result import CoordinatorResult, EmptyReply, Now, PendingReply
from penstock.coordinator.runtime import EXPIRIES_A_TURN, CoordinatorRuntime
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import read_header
from penstock.record.build import build_batch, numbered
from penstock.record.control import build_marker
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition

TOPIC_PARTITION = TopicPartition("t", 0)
CONFIG = GroupConfig()


class Stage:
    """A coordinator with its log and its loop."""

    def __init__(self) -> None:
        self.loop, self.log = ManualLoop(), MemoryLog()
        self.groups = self.started()

    def started(self) -> GroupCoordinator:
        return coordinator(self.log, self.loop, LoopClock(self.loop), CONFIG)

    def commit(
        self, offset: int, group: str = GROUP
    ) -> PendingReply[tuple[KafkaError | None, ...]]:
        return self.groups.commit(group, Committer(), ((TOPIC_PARTITION, CommittedOffset(offset)),))

    def is_ready(self, pending: PendingReply[Any]) -> bool:
        return self.groups.runtime.reply(pending) is not None

    def join(self) -> PendingReply[Joined]:
        joining = GroupJoin(
            new_member_id="a",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(ProtocolMetadata("range", b""),),
        )
        return self.groups.join(GROUP, joining)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def code(pending: PendingReply[Any]) -> ErrorCode:
    assert isinstance(pending.reply, KafkaError)
    return pending.reply.code


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
    """Only it is left: the join phase starts again until it returns or its session ends."""
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


def test_the_reply_of_a_disconnected_client_is_not_kept(stage: Stage) -> None:
    pending = weakref.ref(stage.commit(5))
    gc.collect()
    assert pending() is None


def test_a_shard_answers_once_its_whole_log_is_loaded(stage: Stage) -> None:
    for offset in range(3):
        stage.commit(offset)
    stage.groups = stage.started()
    assert code(stage.commit(9)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError, match="is being loaded"):
        stage.groups.shards()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {TOPIC_PARTITION: CommittedOffset(2)}


def test_an_unreadable_log_is_not_taken_for_an_empty_one(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.commit(5)
    damaged = build_batch(numbered([(b"k", b"v" * 100)], 0, 1), base_offset=1)
    damaged[-100:] = b"\xff" * 100
    damaged[61] = 1  # an impossible length of its record
    stage.log.batches.append(damaged)
    stage.log.ends.append(2)
    stage.groups = stage.started()
    stage.loop.advance()
    assert code(stage.commit(6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert "offsets-0 cannot be loaded" in caplog.text


FOREIGN = {
    "text": (b"k", b"hello"),
    "no key": (None, b"hello"),
    "a newer version": (b"\0\1" + b"\0\1g\0\1t\0\0\0\0", b"\0\x63"),
    "an unknown state": (b"\0\x08\0\1g\0\1m", b"\0\0" + b"\0\0\0\1" * 2 + b"\x09\1\1\0"),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=list(FOREIGN))
@pytest.mark.parametrize("producer_id", [-1, 3], ids=["plain", "in a transaction"])
def test_an_unreadable_record_is_skipped_and_logged(
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
    foreign: tuple[bytes | None, bytes],
    producer_id: int,
) -> None:
    stage.commit(5)
    stage.log.batches.append(
        build_batch(
            numbered([foreign], 0, 1),
            base_offset=1,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
    )
    stage.log.ends.append(2)
    if producer_id >= 0:
        marker = build_marker(
            producer_id=3,
            producer_epoch=0,
            committed=True,
            coordinator_epoch=0,
            timestamp=0,
            base_offset=2,
        )
        stage.log.batches.append(marker)
        stage.log.ends.append(3)
    stage.groups = stage.started()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {TOPIC_PARTITION: CommittedOffset(5)}
    assert stage.groups.runtime.unreadable_records == 1
    (logged,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "offsets-0: skipping the record at offset 1" in logged.message
    assert stage.commit(6).reply == (None,)


@pytest.mark.parametrize(("committed", "found"), [(True, 7), (False, 5), (None, 5)])
def test_records_of_a_transaction_take_effect_once_it_is_committed(
    stage: Stage, committed: bool | None, found: int
) -> None:
    """Kafka writes offsets of transactions like this; its logs may hold them."""
    stage.commit(5)
    other = Stage()
    other.commit(7)
    header = read_header(other.log.batches[0])
    raw = other.log.batches[0]
    assert header.record_count == 1
    key_value = next(iter(_pairs(raw)))
    stage.log.batches.append(
        build_batch(
            numbered([key_value], 0, 1),
            base_offset=1,
            producer_id=3,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )
    stage.log.ends.append(2)
    if committed is not None:
        marker = build_marker(
            producer_id=3,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
            timestamp=0,
            base_offset=2,
        )
        stage.log.batches.append(marker)
        stage.log.ends.append(3)
    stage.groups = stage.started()
    stage.loop.advance()
    reply = stage.groups.fetch(GROUP, None).reply
    assert isinstance(reply, dict)
    assert reply[TOPIC_PARTITION].offset == found


def _pairs(batch: bytearray) -> list[tuple[bytes | None, bytes | None]]:
    from penstock.record.record import records

    return [(each.key, each.value) for each in records(batch, read_header(batch), 1 << 20)]


def test_offsets_of_deleted_topics_are_removed(stage: Stage) -> None:
    stage.commit(5)
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    assert stage.groups.fetch(GROUP, None).reply == {}
    stage.groups = stage.started()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {}


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


def test_requests_are_refused_while_the_log_is_loaded(stage: Stage) -> None:
    stage.commit(5)
    stage.groups.runtime.lead(0, stage.log)
    assert code(stage.commit(6)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.loop.advance(1)
    assert stage.commit(6).reply == (None,)


MANY = [TopicPartition("t", number) for number in range(2000)]


def with_many_offsets(stage: Stage) -> None:
    offsets = tuple((topic_partition, CommittedOffset(1)) for topic_partition in MANY)
    assert stage.groups.commit(GROUP, Committer(), offsets).reply == (None,) * len(MANY)
    stage.log.largest_bytes = 10_000


@pytest.mark.parametrize("way", ["expire", "delete group", "delete offsets", "delete topic"])
def test_tombstones_too_many_for_one_batch_become_several(stage: Stage, way: str) -> None:
    with_many_offsets(stage)
    before = len(stage.log.batches)
    match way:
        case "expire":
            stage.loop.advance(CONFIG.offsets_retention_minutes * 60 + 3600)
        case "delete group":
            assert stage.groups.delete_group(GROUP).reply == EmptyReply()
        case "delete offsets":
            assert stage.groups.delete_offsets(GROUP, tuple(MANY)).reply == (None,) * len(MANY)
        case _:
            stage.groups.partitions_deleted(MANY)
    assert stage.groups.fetch(GROUP, None).reply == {}
    assert len(stage.log.batches) - before > 2
    stage.groups = stage.started()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {}


def test_a_commit_is_one_batch_or_none(stage: Stage) -> None:
    stage.log.largest_bytes = 10_000
    offsets = tuple((topic_partition, CommittedOffset(1)) for topic_partition in MANY)
    assert isinstance(stage.groups.commit(GROUP, Committer(), offsets).reply, RecordTooLarge)
    assert stage.log.batches == []


def test_a_split_removal_that_fails_halfway_is_finished_later(stage: Stage) -> None:
    with_many_offsets(stage)
    append, appended = stage.log.append, list[int]()

    def append_three(*args: Any, **kwargs: Any) -> int:
        if len(appended) == 3:
            raise CoordinatorNotAvailable("too few replicas")
        end = append(*args, **kwargs)
        appended.append(end)
        return end

    stage.log.append = append_three  # type: ignore[method-assign]
    stage.groups.partitions_deleted(MANY)
    left = stage.groups.fetch(GROUP, None).reply
    assert isinstance(left, dict)
    assert 0 < len(left) < len(MANY)
    stage.log.append = append  # type: ignore[method-assign]
    stage.loop.advance(1)
    assert stage.groups.fetch(GROUP, None).reply == {}


def test_removing_offsets_of_deleted_topics_is_retried_until_it_can_be_written(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a recreated topic would be read from the old topic's offset."""
    stage.commit(5)
    stage.loop.advance(1)
    stage.log.refusal = CoordinatorNotAvailable("too few replicas")
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    stage.loop.advance(5)
    logged = [
        each for each in caplog.messages if "forgetting the offsets of deleted topics" in each
    ]
    assert len(logged) == 1
    assert "too few replicas" in logged[0]
    stage.log.refusal = None
    recreated = TopicPartition("t", 1)
    now_ms = stage.groups.runtime.now().wall_ms
    new_offsets = ((recreated, CommittedOffset(1, commit_ms=now_ms)),)
    assert stage.groups.commit(GROUP, Committer(), new_offsets).reply == (None,)
    stage.loop.advance(1)
    assert stage.groups.fetch(GROUP, None).reply == dict(new_offsets)


def test_a_late_removal_spares_offsets_of_a_recreated_topic(stage: Stage) -> None:
    stage.commit(5)
    stage.log.refusal = CoordinatorNotAvailable("too few replicas")
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    stage.log.refusal = None
    stage.loop.now_s += 0.1
    new_offsets = (
        (TOPIC_PARTITION, CommittedOffset(1, commit_ms=stage.groups.runtime.now().wall_ms)),
    )
    stage.groups.commit(GROUP, Committer(), new_offsets)
    stage.loop.advance(5)
    assert stage.groups.fetch(GROUP, None).reply == dict(new_offsets)


def test_offsets_of_topics_deleted_while_a_shard_loads_are_removed_too(stage: Stage) -> None:
    stage.commit(5)
    stage.groups = stage.started()
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    stage.loop.advance(1)
    assert stage.groups.fetch(GROUP, None).reply == {}
