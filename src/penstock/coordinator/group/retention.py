"""Expiry of offsets, and of groups that are left without any."""

from collections.abc import Iterator, Set

from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.offsets import expired_consumer_offsets
from penstock.coordinator.group.offsets import Offsets, expired_offsets
from penstock.coordinator.group.records import ClassicGroupRecord, GroupShardRecord, OffsetRecord
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.types import TopicPartition


def expired_classic_records(
    group: ClassicGroup,
    offsets: Offsets,
    held: Set[TopicPartition],
    now_ms: int,
    retention_ms: int,
) -> Iterator[GroupShardRecord]:
    """Tombstones for expired offsets, and for an empty group that is left without offsets.

    Offsets that an open transaction holds do not expire: its commit would bring them back.
    """
    expired = expired_offsets(group, offsets, now_ms, retention_ms)
    gone = [each for each in expired if each not in held]
    yield from (OffsetRecord(group.id, *topic_partition, None) for topic_partition in gone)
    is_unused = len(gone) == len(offsets) and not held
    if is_unused and group.state is ClassicGroupState.EMPTY and not group.pending_join_members:
        yield ClassicGroupRecord(group.id, None)


def expired_consumer_records(
    group: ConsumerGroup | StreamsGroup,
    offsets: Offsets,
    held: Set[TopicPartition],
    now_ms: int,
    retention_ms: int,
) -> Iterator[GroupShardRecord]:
    expired = expired_consumer_offsets(group.subscribed_topics, offsets, now_ms, retention_ms)
    gone = [each for each in expired if each not in held]
    yield from (OffsetRecord(group.id, *topic_partition, None) for topic_partition in gone)
    is_unused = len(gone) == len(offsets) and not held
    if is_unused and not group.members:
        yield from group.tombstones()
