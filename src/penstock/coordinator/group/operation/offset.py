"""Operations on offsets: commit, fetch and remove them."""

from collections.abc import Collection, Iterable

from penstock.coordinator.group.classic.embedded_protocol import CONSUMER
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.offsets import ADMINISTRATOR, OffsetReader, check_consumer
from penstock.coordinator.group.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnstableOffsetCommit,
)
from penstock.coordinator.group.offsets import (
    CommittedOffset,
    Committer,
    FetchedOffsets,
    check_commit,
    metadata_too_large,
)
from penstock.coordinator.group.records import OffsetRecord
from penstock.coordinator.group.result import GroupResult, session_renewed
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.streams.offsets import check_streams
from penstock.coordinator.result import (
    CoordinatorResult,
    EmptyReply,
    Now,
    PendingReply,
    Refused,
    answer,
)
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.types import TopicPartition


def commit(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[tuple[Refused, ...]],
    group: str,
    committer: Committer,
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...],
    producer: ProducerIdAndEpoch | None = None,
) -> GroupResult:
    """One result for each offset; the accepted ones become one batch.

    With a producer, they take effect when its transaction commits.
    """
    if group in shard.share_groups:
        raise GroupIdNotFound(f"Group {group} is a share group, which commits no offsets.")
    known = shard.classic_groups.get(group)
    consumer = shard.consumer_groups.get(group)
    streams = shard.streams_groups.get(group)
    if streams is not None:
        check_streams(
            streams,
            OffsetReader.of(committer),
            [topic_partition for topic_partition, _ in offsets],
            members_only=not committer.is_transactional,
        )
    elif consumer is None:
        check_commit(known, committer)
    else:
        only = not committer.is_transactional  # a producer need not name the member
        check_consumer(consumer, OffsetReader.of(committer), members_only=only)
    limit = shard.config.offset_metadata_max_bytes
    refused: list[Refused] = []
    records: list[OffsetRecord] = []
    for topic_partition, committed in offsets:
        error = metadata_too_large(committed.metadata, limit)
        refused.append(error)
        if error is None:
            records.append(
                OffsetRecord(group, topic_partition.topic, topic_partition.partition, committed)
            )
    soft_state = None
    member = known.members.get(committer.member_id) if known is not None else None
    if known is not None and member is not None:
        soft_state = session_renewed(known, member, now.steady_ms)  # a commit is a heartbeat too
    return CoordinatorResult(
        tuple(records), (answer(pending, tuple(refused)),), soft_state, producer=producer
    )


def fetch(
    shard: GroupShard,
    pending: PendingReply[FetchedOffsets],
    group: str,
    wanted: Iterable[TopicPartition] | None,
    reader: OffsetReader = ADMINISTRATOR,
    *,
    require_stable: bool = False,
) -> GroupResult:
    """The committed offsets of the wanted partitions, or of all.

    `require_stable`: an error replaces an offset that an open transaction may change. This is
    decided here, with the offsets: when the response is built, this broker may no longer
    coordinate the group.
    """
    consumer = shard.consumer_groups.get(group)
    if consumer is not None:
        check_consumer(consumer, reader)
    streams = shard.streams_groups.get(group)
    if streams is not None:
        check_streams(streams, reader)
    known = shard.offsets.get(group, {})
    partitions = None if wanted is None else list(wanted)
    found: dict[TopicPartition, CommittedOffset | UnstableOffsetCommit] = (
        dict(known)
        if partitions is None
        else {
            topic_partition: known[topic_partition]
            for topic_partition in partitions
            if topic_partition in known
        }
    )
    if require_stable:
        held = shard.pending_offsets().get(group, set())
        for topic_partition in held.intersection(known if partitions is None else partitions):
            found[topic_partition] = UnstableOffsetCommit(
                f"a transaction may change the offset of {group} in {topic_partition}"
            )
    return CoordinatorResult(answers=(answer(pending, found),), reads_state=True)


def delete_offsets(
    shard: GroupShard,
    pending: PendingReply[tuple[Refused, ...]],
    group: str,
    wanted: tuple[TopicPartition, ...],
) -> GroupResult:
    """One result for each partition; offsets of topics that members subscribe to stay."""
    known = (
        shard.consumer_groups.get(group) or shard.streams_groups.get(group) or shard.classic(group)
    )
    read = known.subscribed_topics
    reads_any = False
    if read is None and isinstance(known, ClassicGroup):
        # Consumers whose subscriptions cannot be read may read any topic.
        reads_any = known.protocol_type == CONSUMER
        if not reads_any and known.state is not ClassicGroupState.EMPTY:
            raise NonEmptyGroup(f"{group} has members that are not consumers")
    refused = tuple(
        GroupSubscribedToTopic(f"{group} reads {topic_partition.topic}")
        if reads_any or topic_partition.topic in (read or ())
        else None
        for topic_partition in wanted
    )
    there = shard.offsets_of(group)
    records = tuple(
        OffsetRecord(group, *topic_partition, None)
        for topic_partition, error in zip(wanted, refused, strict=True)
        if error is None and topic_partition in there
    )
    return CoordinatorResult(records, (answer(pending, refused),), may_split=True)


def remove_deleted(
    shard: GroupShard,
    pending: PendingReply[EmptyReply],
    gone: Collection[TopicPartition],
    deleted_ms: int,
) -> GroupResult:
    """Remove the offsets of deleted partitions, in every group.

    This may run late: an offset committed after `deleted_ms` belongs to a new topic of that name,
    unless its topic id says otherwise: the clock may have been set back.
    """
    wanted = frozenset(gone)
    there = {
        (group, topic_partition)
        for group, offsets in shard.offsets.items()
        for topic_partition in wanted.intersection(offsets)
        if shard.is_of_deleted(topic_partition, offsets[topic_partition], deleted_ms)
    }
    there |= {
        (group, topic_partition)
        for group, held in shard.pending_offsets_of_deleted(deleted_ms).items()
        for topic_partition in wanted.intersection(held)
    }
    records = tuple(
        OffsetRecord(group, *topic_partition, None) for group, topic_partition in sorted(there)
    )
    return CoordinatorResult(records, (answer(pending, EmptyReply()),), may_split=True)
