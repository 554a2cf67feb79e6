"""What is asked about offsets: to commit them, to tell them, to forget them."""

from collections.abc import Collection, Iterable

from penstock.coordinator.group.consumer.offsets import ADMINISTRATOR, Reader, check_consumer
from penstock.coordinator.group.decision import Decision, Refused, heard
from penstock.coordinator.group.offsets import (
    CommittedOffset,
    Committer,
    FetchedOffsets,
    check_commit,
    too_large,
)
from penstock.coordinator.group.records import OffsetRecord
from penstock.coordinator.group.refusal import (
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnstableOffsetCommit,
)
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.state import State
from penstock.coordinator.outcome import Done, Now, Outcome, Ticket, answer
from penstock.coordinator.storage import Producer
from penstock.types import TopicPartition


def commit(
    shard: GroupShard,
    now: Now,
    ticket: Ticket[tuple[Refused, ...]],
    group: str,
    committer: Committer,
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...],
    producer: Producer | None = None,
) -> Decision:
    """One answer for each offset; all that are accepted are one batch.

    With a producer, they count once its transaction is committed.
    """
    known = shard.groups.get(group)
    consumer = shard.consumer_groups.get(group)
    if consumer is None:
        check_commit(known, committer)
    else:
        only = not committer.is_transactional  # a producer need not tell for whom it commits
        check_consumer(consumer, Reader.of(committer), members_only=only)
    limit = shard.config.offset_metadata_max_bytes
    refused: list[Refused] = []
    records: list[OffsetRecord] = []
    for where, committed in offsets:
        no = too_large(committed.metadata, limit)
        refused.append(no)
        if no is None:
            records.append(OffsetRecord(group, where.topic, where.partition, committed))
    kept = None
    member = known.members.get(committer.member_id) if known is not None else None
    if known is not None and member is not None:
        kept = heard(known, member, now.steady_ms)  # whoever commits lives
    return Outcome(tuple(records), (answer(ticket, tuple(refused)),), kept, producer=producer)


def fetch(
    shard: GroupShard,
    ticket: Ticket[FetchedOffsets],
    group: str,
    wanted: Iterable[TopicPartition] | None,
    reader: Reader = ADMINISTRATOR,
    *,
    require_stable: bool = False,
) -> Decision:
    """The offsets that there are of those wanted, or all.

    `require_stable`: an offset that an open transaction may move is not told. This is decided
    here, with the offsets: whoever responds later may not coordinate the group any more.
    """
    consumer = shard.consumer_groups.get(group)
    if consumer is not None:
        check_consumer(consumer, reader)
    known = shard.offsets.get(group, {})
    places = None if wanted is None else list(wanted)
    found: dict[TopicPartition, CommittedOffset | UnstableOffsetCommit] = (
        dict(known)
        if places is None
        else {where: known[where] for where in places if where in known}
    )
    if require_stable:
        held = shard.held().get(group, set())
        for where in held.intersection(known if places is None else places):
            found[where] = UnstableOffsetCommit(f"a transaction may move {group}'s {where}")
    return Outcome(answers=(answer(ticket, found),), reads=True)


def delete_offsets(
    shard: GroupShard,
    ticket: Ticket[tuple[Refused, ...]],
    group: str,
    wanted: tuple[TopicPartition, ...],
) -> Decision:
    """One answer for each partition; those of topics that members read stay."""
    known = shard.consumer_groups.get(group) or shard.classic(group)
    read = known.subscribed_topics
    if read is None and known.state is not State.EMPTY:
        raise NonEmptyGroup(f"{group} has members, and nobody can tell what they read")
    refused = tuple(
        GroupSubscribedToTopic(f"{group} reads {where.topic}")
        if where.topic in (read or ())
        else None
        for where in wanted
    )
    there = shard.offsets_of(group)
    records = tuple(
        OffsetRecord(group, *where, None)
        for where, no in zip(wanted, refused, strict=True)
        if no is None and where in there
    )
    return Outcome(records, (answer(ticket, refused),), may_split=True)


def forget(
    shard: GroupShard, ticket: Ticket[Done], gone: Collection[TopicPartition], deleted_ms: int
) -> Decision:
    """Drop the offsets of partitions that are no more, whatever group they are of.

    This may come late: an offset committed after `deleted_ms` is of a topic made anew.
    """
    wanted = frozenset(gone)
    there = {
        (group, where)
        for group, offsets in shard.offsets.items()
        for where in wanted.intersection(offsets)
        if offsets[where].commit_ms <= deleted_ms
    }
    there |= {
        (group, where)
        for group, held in shard.held(until_ms=deleted_ms).items()
        for where in wanted.intersection(held)
    }
    records = tuple(OffsetRecord(group, *where, None) for group, where in sorted(there))
    return Outcome(records, (answer(ticket, Done()),), may_split=True)
