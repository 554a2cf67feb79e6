"""Expiry of offsets and groups, and deletion of groups, while a transaction is open."""

import pytest

from penstock.config.group import GroupConfig
from penstock.coordinator.group.errors import UnstableOffsetCommit
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.operation.group import delete
from penstock.coordinator.group.records import (
    ClassicGroupRecord,
    GroupFormat,
    GroupShardRecord,
    OffsetRecord,
)
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.result import Now, PendingReply
from penstock.coordinator.storage import ProducerIdAndEpoch, RawRecord
from penstock.types import TopicPartition
from support.groups.coordinator_stage import TOPIC_PARTITION, Stage
from support.groups.group_transcript import GROUP

OLD = CommittedOffset(7, commit_ms=0)
HELD = OffsetRecord("g", "t", 1, CommittedOffset(9))
LATE = Now(wall_ms=10**12, steady_ms=10**9)


def shard(*held: GroupShardRecord) -> GroupShard:
    """A group without members that has old offsets in t-0 and t-1."""
    made = GroupShard(GroupConfig(), pending_records=lambda: held)
    for partition in (0, 1):
        made.replay(OffsetRecord("g", "t", partition, OLD))
    for each in held:
        made.replay_pending(each)
    return made


def test_expired_offsets_are_removed_together_with_their_group() -> None:
    assert shard().expire(LATE).records == (
        OffsetRecord("g", "t", 0, None),
        OffsetRecord("g", "t", 1, None),
        ClassicGroupRecord("g", None),
    )


def test_offsets_in_an_open_transaction_and_their_group_do_not_expire() -> None:
    assert shard(HELD).expire(LATE).records == (OffsetRecord("g", "t", 0, None),)


def test_a_group_with_offsets_only_in_an_open_transaction_does_not_expire() -> None:
    other = OffsetRecord("h", "t", 0, CommittedOffset(1))
    made = shard(other)
    assert "h" in made.classic_groups
    assert ClassicGroupRecord("h", None) not in made.expire(LATE).records


@pytest.mark.parametrize("held", [(), (HELD,), (OffsetRecord("g", "t", 5, OLD),)])
def test_a_deleted_group_gets_a_tombstone_for_each_offset_pending_or_not(
    held: tuple[GroupShardRecord, ...],
) -> None:
    made = shard(*held)
    partitions = {0, 1} | {each.partition for each in held if isinstance(each, OffsetRecord)}
    assert delete(made, PendingReply(0), "g").records == (
        *(OffsetRecord("g", "t", each, None) for each in sorted(partitions)),
        ClassicGroupRecord("g", None),
    )


def commit_in_transaction(stage: Stage, partitions: int, producer_id: int) -> None:
    offsets = tuple((TopicPartition("t", each), CommittedOffset(9)) for each in range(partitions))
    committer, producer = Committer(is_transactional=True), ProducerIdAndEpoch(producer_id, 0)
    assert set(stage.groups.commit(GROUP, committer, offsets, producer).reply) == {None}  # type: ignore[arg-type]


def is_stable(stage: Stage, group: str = GROUP) -> bool:
    reply = stage.groups.fetch(group, [TOPIC_PARTITION], require_stable=True).reply
    assert isinstance(reply, dict)
    return not isinstance(reply.get(TOPIC_PARTITION), UnstableOffsetCommit)


def test_an_offset_is_stable_once_no_open_transaction_may_change_it() -> None:
    stage = Stage()
    assert is_stable(stage)
    commit_in_transaction(stage, 1, producer_id=1)
    commit_in_transaction(stage, 1, producer_id=2)
    assert not is_stable(stage)
    stage.groups.runtime.end_transaction(0, 1, committed=False)
    assert not is_stable(stage)
    stage.groups.runtime.end_transaction(0, 2, committed=True)
    assert is_stable(stage)
    commit_in_transaction(stage, 1, producer_id=3)
    assert not is_stable(stage)
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    assert is_stable(stage)


def test_a_request_for_many_groups_reads_open_transactions_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise 100,000 groups in one request, with 1,000 pending offsets, would block the broker
    for long.
    """
    stage, read, decode = Stage(), list[RawRecord](), GroupFormat.decode
    commit_in_transaction(stage, 50, producer_id=1)

    def counted(self: GroupFormat, raw: RawRecord) -> GroupShardRecord | None:
        read.append(raw)
        return decode(self, raw)

    monkeypatch.setattr(GroupFormat, "decode", counted)
    assert all(is_stable(stage, f"other {number}") for number in range(20))
    assert not is_stable(stage)
    assert len(read) == 50
