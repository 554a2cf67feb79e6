"""Rules of groups and offsets as pure functions."""

import pytest

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.embedded_protocol import (
    assignment_bytes,
    read_assignment,
    read_subscription,
)
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.join import GroupJoin, join
from penstock.coordinator.group.classic.member import ClassicGroupMember, ProtocolMetadata
from penstock.coordinator.group.classic.state import TRANSITIONS, ClassicGroupState
from penstock.coordinator.group.consumer import records as consumer
from penstock.coordinator.group.consumer.records import ConsumerGroupRecord
from penstock.coordinator.group.offsets import CommittedOffset, expired_offsets, metadata_too_large
from penstock.coordinator.group.records import ClassicGroupRecord, GroupFormat, OffsetRecord
from penstock.coordinator.group.streams import records as streams
from penstock.coordinator.group.streams.records import StreamsGroupRecord
from penstock.coordinator.keys import partition_for
from penstock.coordinator.result import Now, PendingReply
from penstock.coordinator.storage import RawRecord
from penstock.errors import ProtocolError
from penstock.types import TopicPartition
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.group_metadata_value import GroupMetadataValue
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from support.groups.group_transcript import Story

TOPIC_PARTITION = TopicPartition("t", 0)


@pytest.mark.row("A038")
@pytest.mark.parametrize(
    ("key", "count", "partition"),
    [
        ("", 50, 0),
        ("a", 50, 47),
        ("console-consumer-1", 50, 24),
        # Java's hash of this text is the one integer without an absolute value.
        ("polygenelubricants", 50, 0),
        ("\U0001f600", 1000, 899),
    ],
)
def test_a_group_belongs_to_the_partition_that_java_computes(
    key: str, count: int, partition: int
) -> None:
    assert partition_for(key, count) == partition


@pytest.mark.row("A046")
def test_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(ClassicGroupState)
    assert TRANSITIONS[ClassicGroupState.DEAD] == frozenset()


@pytest.mark.parametrize("version", range(5))
def test_a_subscription_of_any_version_is_read(version: int) -> None:
    """Newer versions too, since they only append fields."""
    metadata = bytes([0, version]) + encode(
        ConsumerProtocolSubscription(topics=["a", "b"]), min(version, 3)
    )
    assert read_subscription(metadata).topics == ["a", "b"]
    assignment = assignment_bytes({"a": [0, 2]}, metadata)
    (topic,) = read_assignment(assignment).assigned_partitions
    assert (assignment[:2], topic.topic, topic.partitions) == (
        bytes([0, min(version, 3)]),
        "a",
        [0, 2],
    )


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\7x"])
def test_malformed_subscriptions_are_refused(metadata: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_subscription(metadata)


def test_offset_metadata_has_a_limit() -> None:
    assert metadata_too_large("é" * 4096, 4096) is None
    assert metadata_too_large("é" * 4097, 4096) is not None


EMPTY = ClassicGroup("g", protocol_type="consumer", state_since_ms=1000)


@pytest.mark.parametrize(
    ("group", "committed", "now_ms", "gone"),
    [
        (EMPTY, CommittedOffset(1, commit_ms=0), 1999, False),
        (EMPTY, CommittedOffset(1, commit_ms=0), 2000, True),
        (EMPTY, CommittedOffset(1, commit_ms=1500), 2000, True),
        (EMPTY, CommittedOffset(1, commit_ms=0, expire_ms=5000), 4999, False),
        (EMPTY, CommittedOffset(1, commit_ms=0, expire_ms=1500), 1500, True),
        (ClassicGroup("g"), CommittedOffset(1, commit_ms=1500), 2499, False),
        (ClassicGroup("g"), CommittedOffset(1, commit_ms=1500), 2500, True),
        (
            ClassicGroup(
                "g", state=ClassicGroupState.PREPARING_REBALANCE, protocol_type="consumer"
            ),
            CommittedOffset(1, commit_ms=0),
            99_999,
            False,
        ),
        (
            ClassicGroup("g", state=ClassicGroupState.STABLE, protocol_type="connect"),
            CommittedOffset(1, commit_ms=0),
            99_999,
            False,
        ),
    ],
)
def test_offsets_expire_by_kafkas_rules(
    group: ClassicGroup, committed: CommittedOffset, now_ms: int, gone: bool
) -> None:
    assert expired_offsets(group, {TOPIC_PARTITION: committed}, now_ms, 1000) == (
        [TOPIC_PARTITION] if gone else []
    )


def consumers(count: int, metadata: bytes) -> ClassicGroup:
    """A stable group of consumers that all subscribe by `metadata`."""
    protocols = (ProtocolMetadata("range", metadata),)
    members = {
        name: ClassicGroupMember(
            id=name, session_timeout_ms=1, rebalance_timeout_ms=1, protocols=protocols
        )
        for name in map(str, range(count))
    }
    return ClassicGroup(
        "g", ClassicGroupState.STABLE, protocol_type="consumer", protocol="range", members=members
    )


def test_offsets_of_topics_that_members_subscribe_to_do_not_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each subscription is parsed once, however many offsets there are, because the loop waits for
    it.
    """
    read = list[bytes]()

    def counted(metadata: bytes) -> ConsumerProtocolSubscription:
        read.append(metadata)
        return read_subscription(metadata)

    monkeypatch.setattr("penstock.coordinator.group.classic.group.read_subscription", counted)
    metadata = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
    offsets = {
        TopicPartition(topic, index): CommittedOffset(1) for topic in "tu" for index in range(50)
    }
    gone = expired_offsets(consumers(3, metadata), offsets, 99_999, 1000)
    assert gone == [TopicPartition("u", index) for index in range(50)]
    assert len(read) == 3
    assert expired_offsets(consumers(3, b"none"), offsets, 99_999, 1000) == []


def test_unused_member_ids_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.coordinator.group.classic.join.MAX_PENDING_JOIN_MEMBERS", 3)
    draft = ClassicGroupDraft(ClassicGroup("g"), GroupConfig(), Now(0, 0))
    for number in range(5):
        request = GroupJoin(
            new_member_id=str(number),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(ProtocolMetadata("range", b""),),
            needs_known_id=True,
        )
        join(draft, request, PendingReply(0))
    assert list(draft.group.pending_join_members) == ["2", "3", "4"]


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_are_read(version: int) -> None:
    key = GroupFormat().encode(OffsetRecord("g", "t", 0, None)).key
    value = bytes([0, version]) + encode(OffsetCommitValue(offset=9, metadata="m"), version)
    read = GroupFormat().decode(RawRecord(key, value))
    assert isinstance(read, OffsetRecord)
    assert read.committed is not None
    assert (read.committed.offset, read.committed.metadata) == (9, "m")


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_read(version: int) -> None:
    key = GroupFormat().encode(ClassicGroupRecord("g", None)).key
    value = bytes([0, version]) + encode(GroupMetadataValue(generation=3), version)
    read = GroupFormat().decode(RawRecord(key, value))
    assert isinstance(read, ClassicGroupRecord)
    assert read.metadata is not None
    assert read.metadata.generation == 3


@pytest.mark.parametrize(
    "record",
    [
        ConsumerGroupRecord(consumer.CurrentKey("g", "m"), consumer.CurrentValue(state=9)),
        StreamsGroupRecord(streams.CurrentKey("g", "m"), streams.CurrentValue(state=9)),
    ],
)
def test_a_record_with_an_unknown_member_state_is_refused(
    record: ConsumerGroupRecord | StreamsGroupRecord,
) -> None:
    raw = GroupFormat().encode(record)
    with pytest.raises(ProtocolError, match="member state 9 is unknown"):
        GroupFormat().decode(raw)  # the loader skips such a record; a replay error would stop it


def test_records_of_unknown_types_are_ignored() -> None:
    assert GroupFormat().decode(RawRecord(b"\0\77\0\1g", b"\0\0")) is None


def test_a_record_without_a_type_is_refused() -> None:
    with pytest.raises(ProtocolError):
        GroupFormat().decode(RawRecord(b"", b""))


def test_an_expiring_offset_is_written_in_the_version_with_an_expiry_time() -> None:
    record = OffsetRecord("g", "t", 0, CommittedOffset(1, expire_ms=5))
    raw = GroupFormat().encode(record)
    assert raw.value is not None
    assert raw.value[:2] == b"\0\1"
    assert GroupFormat().decode(raw) == record


def test_a_full_group_refuses_new_members() -> None:
    story = Story(GroupConfig(group_max_size=2))
    for line in ("join a", "join b"):
        assert "GROUP_MAX_SIZE_REACHED" not in str(story.play(line))
    assert story.play("join c") == ["join c: GROUP_MAX_SIZE_REACHED"]
    story.play("pass 1000")
    story.play("sync a a=x b=y")
    assert story.play("join c") == ["join c: GROUP_MAX_SIZE_REACHED"]
    # A member may join again.
    assert story.play("join a") == ["group: PreparingRebalance 1"]


def test_the_rebalance_log_keeps_the_newest_entries() -> None:
    story = Story(GroupConfig())
    story.play("join a")
    story.play("pass 1000")
    story.play("sync a a=x")
    for _ in range(30):
        story.play("join a")
        story.play("sync a a=x")
    kept = story.shard.rebalances.of("g")
    assert len(kept) == 20
    assert kept[-1].generation == 31
