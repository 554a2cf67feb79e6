"""The groups of one partition of `__consumer_offsets`: their state, and how records change it.

What can be asked of them is in `operation`.
"""

from collections.abc import Callable, Iterable

from penstock.config.consumer_group import ConsumerGroupConfig, group_defaults
from penstock.config.group import GroupConfig
from penstock.coordinator.group import membership
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer import heartbeat as beats
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup, Topics, replayed
from penstock.coordinator.group.consumer.records import ConsumerRecord
from penstock.coordinator.group.consumer.turn import ConsumerTurn, World
from penstock.coordinator.group.deadlines import Deadlines
from penstock.coordinator.group.decision import Decision, Kept, decided, decided_consumer
from penstock.coordinator.group.migration.downgrade import without
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.group.rebalance_log import RebalanceLog
from penstock.coordinator.group.records import GroupRecord, OffsetRecord, StoredRecord, group_of
from penstock.coordinator.group.refusal import GroupIdNotFound
from penstock.coordinator.group.retention import lapsed, lapsed_consumer
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Now, Outcome
from penstock.types import TopicPartition
from penstock.wire.messages.group_metadata_value import GroupMetadataValue


class GroupShard:
    """Operations decide and change nothing; `replay` and `keep` change and decide nothing."""

    def __init__(
        self,
        config: GroupConfig,
        assignors: Assignors = OFFERED,
        topics: Callable[[], Topics] = dict,
        settings: Callable[[str], ConsumerGroupConfig] | None = None,
        pending: Callable[[], Iterable[StoredRecord]] = tuple,
    ) -> None:
        self.config, self._assignors, self._topics = config, assignors, topics
        defaults = group_defaults(config)
        self._settings = settings or (lambda _: defaults)
        """What each group of the consumer protocol has set for itself."""
        self._pending = pending
        """Records of transactions that are open."""
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        """No name is in both."""
        self.offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.rebalances = RebalanceLog()
        self._deadlines = Deadlines()
        self._next_check_ms = 0

    # --- what operations read

    def classic(self, group: str) -> ClassicGroup:
        """The group, if it is there and of the classic protocol."""
        known = self.groups.get(group)
        if known is None:
            why = "is not a classic group." if group in self.consumer_groups else "not found."
            raise GroupIdNotFound(f"Group {group} {why}")
        return known

    def held(self, until_ms: int | None = None) -> dict[str, set[TopicPartition]]:
        """By group, the partitions whose offsets open transactions may move; of those committed
        until then, if a time is given.
        """
        held: dict[str, set[TopicPartition]] = {}
        for record in self._pending():
            if isinstance(record, OffsetRecord) and _is_until(record, until_ms):
                where = TopicPartition(record.topic, record.partition)
                held.setdefault(record.group, set()).add(where)
        return held

    def offsets_of(self, group: str) -> set[TopicPartition]:
        """Where the group has an offset, or may get one from an open transaction."""
        return self.offsets.get(group, {}).keys() | self.held().get(group, set())

    def turn(self, group: ClassicGroup, now: Now) -> Turn:
        return Turn(group, self.config, now)

    def world(self, group: str, now: Now) -> World:
        return World(self.config, self._settings(group), self._assignors, self._topics(), now)

    def consumer_turn(self, group: ConsumerGroup, now: Now) -> ConsumerTurn:
        return ConsumerTurn(group, self.world(group.id, now), self.rebalances.of(group.id))

    # --- what follows from decisions

    def replay(self, record: StoredRecord) -> None:
        match record:
            case OffsetRecord(group, topic, partition, committed):
                self._replay_offset(group, TopicPartition(topic, partition), committed)
            case GroupRecord(group, metadata):
                self._replay_group(group, metadata)
            case ConsumerRecord():
                self._replay_consumer(record)

    def pended(self, record: StoredRecord) -> None:
        if isinstance(record, OffsetRecord):
            self._exist(record.group)

    def _exist(self, group: str) -> None:
        """A consumer without membership has offsets only: a group that is always empty."""
        if group not in self.groups and group not in self.consumer_groups:
            self.groups[group] = ClassicGroup(group)

    def _replay_offset(
        self, group: str, where: TopicPartition, committed: CommittedOffset | None
    ) -> None:
        if committed is not None:
            self._exist(group)
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
        if not soft.only_heard:
            self._deadlines.set(group.id, group.next_deadline_ms(), soft.now_ms)
        for each in soft.finished:
            self.rebalances.add(group.id, each)

    def loaded(self, now: Now) -> None:
        """Members have their whole session to find their new coordinator."""
        for group in list(self.groups.values()):
            turn = self.turn(group, now)
            for member in group.members.values():
                turn.heard(member)
            self.keep(Kept(now.steady_ms, turn.group))
        for consumer in list(self.consumer_groups.values()):
            beats.begin(consumer_turn := self.consumer_turn(consumer, now))
            self.keep(Kept(now.steady_ms, consumer_turn.group))
        self._next_check_ms = now.steady_ms + self.config.offsets_retention_check_interval_ms

    # --- time

    def next_deadline_ms(self) -> int | None:
        first = self._deadlines.first()
        return self._next_check_ms if first is None else min(first[0], self._next_check_ms)

    def expire(self, now: Now) -> Decision:
        first = self._deadlines.first()
        if first is not None and first[0] <= now.steady_ms:
            return self._expire_group(first[1], now)
        return self._forget_offsets(now)

    def _expire_group(self, group: str, now: Now) -> Decision:
        consumer = self.consumer_groups.get(group)
        if consumer is not None:
            consumer_turn = self.consumer_turn(consumer, now)
            late = beats.late(consumer, now.steady_ms)
            if late:
                without(consumer_turn, [who for who, _ in late], ", ".join(why for _, why in late))
            return decided_consumer(consumer_turn)
        turn = self.turn(self.groups[group], now)
        membership.expire(turn)
        return decided(turn)

    def _forget_offsets(self, now: Now) -> Decision:
        retention_ms = self.config.offsets_retention_minutes * 60_000
        records: list[StoredRecord] = []
        held, none = self.held(), frozenset[TopicPartition]()
        for name, group in self.groups.items():
            offsets, kept = self.offsets.get(name, {}), held.get(name, none)
            records += lapsed(group, offsets, kept, now.wall_ms, retention_ms)
        for name, consumer in self.consumer_groups.items():
            offsets, kept = self.offsets.get(name, {}), held.get(name, none)
            records += lapsed_consumer(consumer, offsets, kept, now.wall_ms, retention_ms)
        next_ms = now.steady_ms + self.config.offsets_retention_check_interval_ms
        soft = Kept(now.steady_ms, next_check_ms=next_ms)
        return Outcome(tuple(records), soft=soft, may_split=True)


def _is_until(record: OffsetRecord, until_ms: int | None) -> bool:
    committed = record.committed
    return until_ms is None or committed is None or committed.commit_ms <= until_ms
