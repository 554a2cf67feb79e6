"""Removal of offsets: of deleted topics and groups, in several batches, with retries."""

from typing import Any

import pytest

from penstock.coordinator.errors import CoordinatorNotAvailable, CoordinatorRecordTooLarge
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.errors import GroupSubscribedToTopic, NonEmptyGroup
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.operation.offset import remove_deleted
from penstock.coordinator.group.records import OffsetRecord
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.result import EmptyReply, PendingReply
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.types import BrokerId, TopicPartition, Uuid
from support.groups.coordinator_stage import CONFIG, TOPIC_PARTITION, Stage
from support.groups.group_transcript import GROUP


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_offsets_of_deleted_topics_are_removed(stage: Stage) -> None:
    stage.commit(5)
    stage.groups.partitions_deleted([TOPIC_PARTITION])
    assert stage.groups.fetch(GROUP, None).reply == {}
    stage.groups = stage.started()
    stage.loop.advance()
    assert stage.groups.fetch(GROUP, None).reply == {}


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_offsets_stay_if_the_subscriptions_of_members_cannot_be_read(
    stage: Stage, protocol_type: str
) -> None:
    """Consumers with unknown subscriptions may read any topic; other clients read unknown ones."""
    stage.commit(5)
    stage.groups.join(
        GROUP,
        GroupJoin(
            new_member_id="a",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type=protocol_type,
            protocols=(ProtocolMetadata("range", b""),),
        ),
    )
    stage.loop.advance(1)
    reply = stage.groups.delete_offsets(GROUP, (TOPIC_PARTITION,)).reply
    if protocol_type == "consumer":
        assert isinstance(reply, tuple)
        assert isinstance(reply[0], GroupSubscribedToTopic)
    else:
        assert isinstance(reply, NonEmptyGroup)
    assert stage.groups.fetch(GROUP, None).reply != {}


OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)
ONE = {0: PartitionRegistration((BrokerId(1),))}


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize(
    ("topics", "commit_ms", "topic_id", "gone"),
    [
        ({}, 2000, OLD, True),  # the clock was set back between the commit and the deletion
        ({"t": Topic("t", NEW, ONE)}, 2000, OLD, True),
        ({"t": Topic("t", NEW, ONE)}, 2000, NEW, False),
        ({"t": Topic("t", NEW, ONE)}, 500, NEW, False),  # the clock was set back after the deletion
        ({"t": Topic("t", OLD, {})}, 500, OLD, True),  # its other partitions are removed later
    ],
)
def test_offsets_of_a_deleted_topic_are_distinguished_from_those_of_a_new_one(
    topics: dict[str, Topic], commit_ms: int, topic_id: Uuid, gone: bool, in_transaction: bool
) -> None:
    record = OffsetRecord("g", "t", 0, CommittedOffset(5, commit_ms=commit_ms, topic_id=topic_id))
    held = (record,) if in_transaction else ()
    shard = GroupShard(CONFIG, topics=lambda: topics, pending_records=lambda: held)
    if not in_transaction:
        shard.replay(record)
    removed = remove_deleted(shard, PendingReply(0), [TOPIC_PARTITION], 1000).records
    assert removed == ((OffsetRecord("g", "t", 0, None),) if gone else ())


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


def test_a_commit_too_large_for_one_batch_is_refused(stage: Stage) -> None:
    stage.log.largest_bytes = 10_000
    offsets = tuple((topic_partition, CommittedOffset(1)) for topic_partition in MANY)
    assert isinstance(
        stage.groups.commit(GROUP, Committer(), offsets).reply, CoordinatorRecordTooLarge
    )
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
