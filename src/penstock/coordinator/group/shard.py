"""The groups of one partition of `__consumer_offsets`, and what can be done with them."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import msgspec

from penstock.config.consumer_group import ConsumerGroupConfig, group_defaults
from penstock.config.group import GroupConfig
from penstock.coordinator.group import join as joins
from penstock.coordinator.group import membership
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer import heartbeat as beats
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup, GroupState, Topics, replayed
from penstock.coordinator.group.consumer.heartbeat import Heartbeat, HeartbeatReply
from penstock.coordinator.group.consumer.offsets import (
    ADMINISTRATOR,
    Reader,
    check_consumer,
    forgotten,
)
from penstock.coordinator.group.consumer.records import ConsumerRecord
from penstock.coordinator.group.consumer.turn import ConsumerTurn, World
from penstock.coordinator.group.deadlines import Deadlines
from penstock.coordinator.group.join import Joining
from penstock.coordinator.group.member import Joined, Synced
from penstock.coordinator.group.membership import Leaving, Syncing
from penstock.coordinator.group.offsets import (
    CommittedOffset,
    Committer,
    Offsets,
    check_commit,
    expired,
    too_large,
)
from penstock.coordinator.group.rebalance_log import Rebalance, RebalanceLog
from penstock.coordinator.group.records import (
    GroupRecord,
    OffsetRecord,
    StoredRecord,
    group_of,
    metadata_of,
)
from penstock.coordinator.group.refusal import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InconsistentGroupProtocol,
    NonEmptyGroup,
    UnknownMemberId,
)
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Answer, Done, Now, Outcome, Ticket, answer
from penstock.coordinator.storage import Producer
from penstock.errors import KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.group_metadata_value import GroupMetadataValue

Refused: TypeAlias = KafkaError | None


class Kept(msgspec.Struct, frozen=True):
    """What a decision changes beside the records: a group as it now is, and its history."""

    now_ms: int
    group: ClassicGroup | ConsumerGroup | None = None
    finished: tuple[Rebalance, ...] = ()
    next_check_ms: int | None = None


Decision: TypeAlias = Outcome[StoredRecord, Kept]


class GroupShard:
    """Operations decide and change nothing; `replay` and `keep` change and decide nothing."""

    def __init__(
        self,
        config: GroupConfig,
        assignors: Assignors = OFFERED,
        topics: Callable[[], Topics] = dict,
        settings: Callable[[str], ConsumerGroupConfig] | None = None,
    ) -> None:
        self._config, self._assignors, self._topics = config, assignors, topics
        defaults = group_defaults(config)
        self._settings = settings or (lambda _: defaults)
        """What each group of the consumer protocol has set for itself."""
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        """No name is in both."""
        self.offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.rebalances = RebalanceLog()
        self._deadlines = Deadlines()
        self._next_check_ms = 0

    # --- what members ask

    def join(self, now: Now, ticket: Ticket[Joined], group: str, asked: Joining) -> Decision:
        known = self.groups.get(group)
        if known is None and asked.member_id:
            raise UnknownMemberId(f"there is no group {group}")
        other = self.consumer_groups.get(group)
        if other is not None and other.members:
            raise InconsistentGroupProtocol(f"the members of {group} speak the consumer protocol")
        turn = self._turn(known or ClassicGroup(group), now)
        turn.stored = known is None
        joins.join(turn, asked, ticket)
        return _decided(turn, tuple(other.tombstones()) if other is not None else ())

    def consumer_heartbeat(
        self, now: Now, ticket: Ticket[HeartbeatReply], group: str, asked: Heartbeat
    ) -> Decision:
        world = self._world(now, group)
        beats.check(asked, world)
        known = self.consumer_groups.get(group)
        if known is None and asked.epoch != beats.JOINS:
            raise GroupIdNotFound(f"there is no consumer group {group}")
        turn = ConsumerTurn(known or ConsumerGroup(group), world)
        act = beats.heartbeat if asked.epoch >= beats.JOINS else beats.leave
        reply = act(turn, asked)
        return _decided_consumer(turn, self._replaced(group), (answer(ticket, reply),))

    def _replaced(self, group: str) -> tuple[StoredRecord, ...]:
        """A classic group without members gives way; its offsets stay."""
        classic = self.groups.get(group)
        if classic is None:
            return ()
        if classic.state is not State.EMPTY or classic.pending:
            raise GroupIdNotFound(f"the members of {group} speak the classic protocol")
        return (GroupRecord(group, None),)

    def sync(self, now: Now, ticket: Ticket[Synced], group: str, asked: Syncing) -> Decision:
        turn = self._turn(self._members_of(group), now)
        membership.sync(turn, asked, ticket)
        return _decided(turn)

    def heartbeat(
        self, now: Now, ticket: Ticket[Done], group: str, who: Leaving, generation: int
    ) -> Decision:
        turn = self._turn(self._members_of(group), now)
        refused = membership.heartbeat(turn, who.member_id, who.instance_id, generation)
        turn.answer(ticket, refused or Done())
        return _decided(turn)

    def leave(
        self,
        now: Now,
        ticket: Ticket[tuple[Refused, ...]],
        group: str,
        leaving: tuple[Leaving, ...],
    ) -> Decision:
        turn = self._turn(self._members_of(group), now)
        turn.answer(ticket, membership.leave(turn, leaving))
        return _decided(turn)

    # --- offsets

    def commit(
        self,
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
        known = self.groups.get(group)
        consumer = self.consumer_groups.get(group)
        if consumer is None:
            check_commit(known, committer)
        else:
            check_consumer(consumer, Reader.of(committer), commits=True)
        refused = tuple(
            too_large(committed.metadata, self._config.offset_metadata_max_bytes)
            for _, committed in offsets
        )
        records = tuple(
            OffsetRecord(group, where.topic, where.partition, committed)
            for (where, committed), no in zip(offsets, refused, strict=True)
            if no is None
        )
        kept = None
        member = known.members.get(committer.member_id) if known is not None else None
        if known is not None and member is not None:
            turn = self._turn(known, now)
            turn.heard(member)  # whoever commits lives
            kept = Kept(now.steady_ms, turn.group)
        return Outcome(records, (answer(ticket, refused),), kept, producer=producer)

    def fetch(
        self,
        ticket: Ticket[Offsets],
        group: str,
        wanted: Iterable[TopicPartition] | None,
        reader: Reader = ADMINISTRATOR,
    ) -> Decision:
        """The offsets that there are of those wanted, or all."""
        consumer = self.consumer_groups.get(group)
        if consumer is not None:
            check_consumer(consumer, reader)
        known = self.offsets.get(group, {})
        found = (
            dict(known)
            if wanted is None
            else {where: known[where] for where in wanted if where in known}
        )
        return Outcome(answers=(answer(ticket, found),), reads=True)

    def delete_offsets(
        self,
        ticket: Ticket[tuple[Refused, ...]],
        group: str,
        wanted: tuple[TopicPartition, ...],
    ) -> Decision:
        """One answer for each partition; those of topics that members read stay."""
        known = self.consumer_groups.get(group) or self._existing(group)
        read = known.subscribed_topics
        if read is None and known.state is not State.EMPTY:
            raise NonEmptyGroup(f"{group} has members, and nobody can tell what they read")
        refused = tuple(
            GroupSubscribedToTopic(f"{group} reads {where.topic}")
            if where.topic in (read or ())
            else None
            for where in wanted
        )
        offsets = self.offsets.get(group, {})
        records = tuple(
            OffsetRecord(group, *where, None)
            for where, no in zip(wanted, refused, strict=True)
            if no is None and where in offsets
        )
        return Outcome(records, (answer(ticket, refused),))

    def forget(self, ticket: Ticket[Done], gone: Collection[TopicPartition]) -> Decision:
        """Drop the offsets of partitions that are no more, whatever group they are of."""
        records = tuple(
            OffsetRecord(group, *where, None)
            for group, offsets in self.offsets.items()
            for where in gone
            if where in offsets
        )
        return Outcome(records, (answer(ticket, Done()),))

    def delete_group(self, ticket: Ticket[Done], group: str) -> Decision:
        consumer = self.consumer_groups.get(group)
        if consumer.members if consumer else self._existing(group).state is not State.EMPTY:
            raise NonEmptyGroup(f"{group} has members")
        return Outcome(tuple(self._tombstones(group)), (answer(ticket, Done()),))

    def _tombstones(self, group: str) -> Iterable[StoredRecord]:
        """Offsets first: a group record that went alone would leave them to a simple group."""
        for where in self.offsets.get(group, {}):
            yield OffsetRecord(group, *where, None)
        consumer = self.consumer_groups.get(group)
        yield from [GroupRecord(group, None)] if consumer is None else consumer.tombstones()

    def describe_consumer(self, ticket: Ticket[ConsumerGroup], group: str) -> Decision:
        known = self.consumer_groups.get(group)
        if known is None:
            raise GroupIdNotFound(f"Group {group} is not a consumer group.")
        return Outcome(answers=(answer(ticket, known),), reads=True)

    def describe(self, ticket: Ticket[ClassicGroup], group: str) -> Decision:
        return Outcome(answers=(answer(ticket, self._existing(group)),), reads=True)

    # --- what follows from decisions

    def replay(self, record: StoredRecord) -> None:
        match record:
            case OffsetRecord(group, topic, partition, committed):
                self._replay_offset(group, TopicPartition(topic, partition), committed)
            case GroupRecord(group, metadata):
                self._replay_group(group, metadata)
            case ConsumerRecord():
                self._replay_consumer(record)

    def _replay_offset(
        self, group: str, where: TopicPartition, committed: CommittedOffset | None
    ) -> None:
        if committed is not None:
            if group not in self.consumer_groups:
                # A consumer without membership has offsets only: a group that is always empty.
                self.groups.setdefault(group, ClassicGroup(group))
            self.offsets.setdefault(group, {})[where] = committed
            return
        offsets = self.offsets.get(group, {})
        offsets.pop(where, None)
        if not offsets:
            self.offsets.pop(group, None)

    def _replay_group(self, group: str, metadata: GroupMetadataValue | None) -> None:
        if metadata is not None:
            self.groups[group] = group_of(group, metadata)
            return
        self.groups.pop(group, None)
        self.rebalances.forget(group)
        self._deadlines.set(group, None, 0)

    def _replay_consumer(self, record: ConsumerRecord) -> None:
        name = record.group
        known = self.consumer_groups.get(name)
        if known is None and record.value is None:
            return
        after = replayed(known or ConsumerGroup(name), record)
        if after is not None:
            self.consumer_groups[name] = after
            self.groups.pop(name, None)  # its offsets may have been read before
            return
        del self.consumer_groups[name]
        self.rebalances.forget(name)
        self._deadlines.set(name, None, 0)

    def keep(self, soft: Kept) -> None:
        if soft.next_check_ms is not None:
            self._next_check_ms = soft.next_check_ms
        group = soft.group
        if group is None:
            return
        if isinstance(group, ConsumerGroup):
            self.consumer_groups[group.id] = group
        else:
            self.groups[group.id] = group
        self._deadlines.set(group.id, group.next_deadline_ms(), soft.now_ms)
        for each in soft.finished:
            self.rebalances.add(group.id, each)

    def loaded(self, now: Now) -> None:
        """Members have their whole session to find their new coordinator."""
        for group in list(self.groups.values()):
            turn = self._turn(group, now)
            for member in group.members.values():
                turn.heard(member)
            self.keep(Kept(now.steady_ms, turn.group))
        for consumer in list(self.consumer_groups.values()):
            beats.begin(consumer_turn := ConsumerTurn(consumer, self._world(now, consumer.id)))
            self.keep(Kept(now.steady_ms, consumer_turn.group))
        self._next_check_ms = now.steady_ms + self._config.offsets_retention_check_interval_ms

    # --- time

    def next_deadline_ms(self) -> int | None:
        first = self._deadlines.first()
        return self._next_check_ms if first is None else min(first[0], self._next_check_ms)

    def expire(self, now: Now) -> Decision:
        first = self._deadlines.first()
        if first is not None and first[0] <= now.steady_ms:
            consumer = self.consumer_groups.get(first[1])
            if consumer is not None:
                consumer_turn = ConsumerTurn(consumer, self._world(now, consumer.id))
                beats.expire(consumer_turn)
                return _decided_consumer(consumer_turn)
            turn = self._turn(self.groups[first[1]], now)
            membership.expire(turn)
            return _decided(turn)
        return self._forget_offsets(now)

    def _forget_offsets(self, now: Now) -> Decision:
        """Offsets past their retention, and groups that are left with nothing."""
        retention_ms = self._config.offsets_retention_minutes * 60_000
        records: list[StoredRecord] = []
        for name, group in self.groups.items():
            offsets = self.offsets.get(name, {})
            gone = expired(group, offsets, now.wall_ms, retention_ms)
            records += [OffsetRecord(name, *where, None) for where in gone]
            if len(gone) == len(offsets) and group.state is State.EMPTY and not group.pending:
                records.append(GroupRecord(name, None))
        for name, consumer in self.consumer_groups.items():
            offsets = self.offsets.get(name, {})
            gone = forgotten(consumer, offsets, now.wall_ms, retention_ms)
            records += [OffsetRecord(name, *where, None) for where in gone]
            if len(gone) == len(offsets) and consumer.state is GroupState.EMPTY:
                records += consumer.tombstones()
        next_ms = now.steady_ms + self._config.offsets_retention_check_interval_ms
        return Outcome(tuple(records), soft=Kept(now.steady_ms, next_check_ms=next_ms))

    # --- looking things up

    def _turn(self, group: ClassicGroup, now: Now) -> Turn:
        return Turn(group, self._config, now)

    def _world(self, now: Now, group: str) -> World:
        return World(self._config, self._settings(group), self._assignors, self._topics(), now)

    def _members_of(self, group: str) -> ClassicGroup:
        known = self.groups.get(group)
        if known is None:
            raise UnknownMemberId(f"there is no group {group}")
        return known

    def _existing(self, group: str) -> ClassicGroup:
        known = self.groups.get(group)
        if known is None:
            raise GroupIdNotFound(f"Group {group} not found.")
        return known


def _decided(turn: Turn, before: tuple[StoredRecord, ...] = ()) -> Decision:
    group = turn.group
    records = (GroupRecord(group.id, metadata_of(group)),) if turn.stored else ()
    kept = Kept(turn.now_ms, group, tuple(turn.finished))
    return Outcome((*before, *records), tuple(turn.answers), kept)


def _decided_consumer(
    turn: ConsumerTurn, before: tuple[StoredRecord, ...] = (), answers: tuple[Answer, ...] = ()
) -> Decision:
    kept = Kept(turn.now_ms, turn.group, tuple(turn.finished))
    return Outcome((*before, *turn.records), answers, kept)
