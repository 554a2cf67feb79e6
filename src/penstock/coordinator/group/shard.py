"""The groups of one partition of `__consumer_offsets`: their state, and how records change it.

The operations on them are in `operation`.
"""

from collections.abc import Callable, Iterable, Mapping

from penstock.config.consumer_group import ConsumerGroupConfig, group_defaults
from penstock.config.group import GroupConfig
from penstock.config.share import ShareConfig
from penstock.config.share_group import ShareGroupConfig, share_group_defaults
from penstock.config.streams import StreamsConfig
from penstock.config.streams_group import StreamsGroupConfig, streams_group_defaults
from penstock.coordinator.group.classic import leave as leaves
from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.consumer import heartbeat as heartbeats
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.context import GroupContext
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.group import ConsumerGroup, Topics, replayed
from penstock.coordinator.group.consumer.records import ConsumerGroupRecord
from penstock.coordinator.group.deadlines import GroupDeadlines
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.coordinator.group.migration.downgrade import remove_members
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.group.rebalance_log import RebalanceLog
from penstock.coordinator.group.records import (
    ClassicGroupRecord,
    GroupShardRecord,
    OffsetRecord,
    group_of,
)
from penstock.coordinator.group.result import (
    GroupResult,
    SoftState,
    classic_result,
    consumer_result,
    share_result,
    streams_result,
)
from penstock.coordinator.group.retention import expired_classic_records, expired_consumer_records
from penstock.coordinator.group.share import heartbeat as share_heartbeats
from penstock.coordinator.group.share.group import ShareGroup, replayed_share
from penstock.coordinator.group.share.heartbeat import ShareContext, ShareGroupDraft
from penstock.coordinator.group.share.records import ShareGroupRecord
from penstock.coordinator.group.streams import heartbeat as streams_heartbeats
from penstock.coordinator.group.streams.assignors import OFFERED as OFFERED_FOR_TASKS
from penstock.coordinator.group.streams.assignors import TaskAssignors
from penstock.coordinator.group.streams.draft import StreamsContext, StreamsGroupDraft
from penstock.coordinator.group.streams.group import StreamsGroup, replayed_streams
from penstock.coordinator.group.streams.records import StreamsGroupRecord
from penstock.coordinator.result import CoordinatorResult, Now
from penstock.types import NO_UUID, TopicPartition
from penstock.wire.messages.group_metadata_value import GroupMetadataValue


class GroupShard:
    """Operations only decide; `replay` and `apply_soft_state` only change the state."""

    def __init__(
        self,
        config: GroupConfig,
        assignors: Assignors = OFFERED,
        topics: Callable[[], Topics] = dict,
        settings: Callable[[str], ConsumerGroupConfig] | None = None,
        pending_records: Callable[[], tuple[GroupShardRecord, ...]] = tuple,
        share_config: ShareConfig | None = None,
        share_settings: Callable[[str], ShareGroupConfig] | None = None,
        streams_config: StreamsConfig | None = None,
        streams_settings: Callable[[str], StreamsGroupConfig] | None = None,
        task_assignors: TaskAssignors = OFFERED_FOR_TASKS,
    ) -> None:
        self.config, self._assignors, self._topics = config, assignors, topics
        defaults = group_defaults(config)
        self._settings = settings or (lambda _: defaults)
        """The settings of each group of the consumer protocol."""
        self._share_config = share_config or ShareConfig()
        share_defaults = share_group_defaults(self._share_config)
        self._share_settings = share_settings or (lambda _: share_defaults)
        self._streams_config = streams_config or StreamsConfig()
        streams_defaults = streams_group_defaults(self._streams_config)
        self._streams_settings = streams_settings or (lambda _: streams_defaults)
        self._task_assignors = task_assignors
        self._pending_records = pending_records
        """The records of open transactions; the same tuple until that changes."""
        self._pending_seen: tuple[GroupShardRecord, ...] = ()
        self._pending_offsets: dict[str, set[TopicPartition]] = {}
        self.classic_groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.share_groups: dict[str, ShareGroup] = {}
        self.streams_groups: dict[str, StreamsGroup] = {}
        """A group is in at most one of the four mappings above."""
        self.offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.rebalances = RebalanceLog()
        self._deadlines = GroupDeadlines()
        self._next_check_ms = 0

    # --- read by operations

    def classic(self, group: str) -> ClassicGroup:
        """The classic group of that name; refused if there is none."""
        known = self.classic_groups.get(group)
        if known is None:
            is_other = self.is_other_than(self.classic_groups, group)
            why = "is not a classic group." if is_other else "not found."
            raise GroupIdNotFound(f"Group {group} {why}")
        return known

    def is_other_than(self, groups: Mapping[str, object], name: str) -> bool:
        """Whether there is a group of that name and of another kind than these."""
        kinds = (self.classic_groups, self.consumer_groups, self.share_groups, self.streams_groups)
        return any(name in each for each in kinds if each is not groups)

    def pending_offsets(self) -> Mapping[str, set[TopicPartition]]:
        """By group, the partitions whose offsets an open transaction may change.

        Cached until the pending records change, since one request may name thousands of groups.
        """
        pending = self._pending_records()
        if pending is not self._pending_seen:
            self._pending_seen, self._pending_offsets = pending, _offsets_by_group(pending)
        return self._pending_offsets

    def pending_offsets_of_deleted(self, deleted_ms: int) -> Mapping[str, set[TopicPartition]]:
        """Like `pending_offsets`, but only for topics that were deleted at `deleted_ms`."""
        return _offsets_by_group(
            each
            for each in self._pending_records()
            if isinstance(each, OffsetRecord)
            and (
                each.committed is None
                or self.is_of_deleted(
                    TopicPartition(each.topic, each.partition), each.committed, deleted_ms
                )
            )
        )

    def is_of_deleted(
        self, topic_partition: TopicPartition, committed: CommittedOffset, deleted_ms: int
    ) -> bool:
        """Whether the offset belongs to the topic deleted at `deleted_ms`, not to a new one.

        The time decides only for offsets without a topic id: the clock may have been set back
        since.
        """
        if committed.topic_id == NO_UUID:
            return committed.commit_ms <= deleted_ms
        now = self._topics().get(topic_partition.topic)
        return (
            now is None
            or now.id != committed.topic_id
            or topic_partition.partition not in now.partitions
        )

    def offsets_of(self, group: str) -> set[TopicPartition]:
        """The partitions where the group has an offset, or may get one from an open transaction."""
        return self.offsets.get(group, {}).keys() | self.pending_offsets().get(group, set())

    def classic_draft(self, group: ClassicGroup, now: Now) -> ClassicGroupDraft:
        return ClassicGroupDraft(group, self.config, now)

    def context(self, group: str, now: Now) -> GroupContext:
        return GroupContext(
            self.config, self._settings(group), self._assignors, self._topics(), now
        )

    def consumer_draft(self, group: ConsumerGroup, now: Now) -> ConsumerGroupDraft:
        return ConsumerGroupDraft(group, self.context(group.id, now), self.rebalances.of(group.id))

    def share_draft(self, group: ShareGroup, now: Now) -> ShareGroupDraft:
        settings = self._share_settings(group.id)
        return ShareGroupDraft(
            group, ShareContext(self._share_config, settings, self._topics(), now)
        )

    def streams_draft(self, group: StreamsGroup, now: Now) -> StreamsGroupDraft:
        settings = self._streams_settings(group.id)
        return StreamsGroupDraft(
            group,
            StreamsContext(
                self._streams_config,
                settings,
                self._topics(),
                now,
                self._task_assignors,
                self.config,
            ),
        )

    # --- changes of the state

    def replay(self, record: GroupShardRecord) -> None:
        match record:
            case OffsetRecord(group, topic, partition, committed):
                self._replay_offset(group, TopicPartition(topic, partition), committed)
            case ClassicGroupRecord(group, metadata):
                self._replay_group(group, metadata)
            case ConsumerGroupRecord():
                self._replay_consumer(record)
            case ShareGroupRecord():
                self._replay_share(record)
            case StreamsGroupRecord():
                self._replay_streams(record)

    def replay_pending(self, record: GroupShardRecord) -> None:
        if isinstance(record, OffsetRecord):
            self._ensure_exists(record.group)

    def _ensure_exists(self, group: str) -> None:
        """Create an empty group for offsets without one: a simple consumer has no members."""
        if group not in self.classic_groups and not self.is_other_than(self.classic_groups, group):
            self.classic_groups[group] = ClassicGroup(group)

    def _replay_offset(
        self, group: str, topic_partition: TopicPartition, committed: CommittedOffset | None
    ) -> None:
        if committed is not None:
            self._ensure_exists(group)
            self.offsets.setdefault(group, {})[topic_partition] = committed
            return
        offsets = self.offsets.get(group, {})
        offsets.pop(topic_partition, None)
        if not offsets:
            self.offsets.pop(group, None)

    def _replay_group(self, group: str, metadata: GroupMetadataValue | None) -> None:
        if metadata is not None:
            self.classic_groups[group] = group_of(group, metadata)
            return
        self.classic_groups.pop(group, None)
        self.rebalances.forget(group)
        self._deadlines.set(group, None, 0)

    def _replay_consumer(self, record: ConsumerGroupRecord) -> None:
        name = record.group
        known = self.consumer_groups.get(name)
        if known is None and record.value is None:
            return
        after = replayed(known or ConsumerGroup(name), record)
        if after is not None:
            self.consumer_groups[name] = after
            self.classic_groups.pop(name, None)  # replaying its offsets may have made one
            return
        del self.consumer_groups[name]
        self.rebalances.forget(name)
        self._deadlines.set(name, None, 0)

    def _replay_share(self, record: ShareGroupRecord) -> None:
        name = record.group
        known = self.share_groups.get(name)
        if known is None and record.value is None:
            return
        after = replayed_share(known or ShareGroup(name), record)
        if after is not None:
            self.share_groups[name] = after
            return
        del self.share_groups[name]
        self._deadlines.set(name, None, 0)

    def _replay_streams(self, record: StreamsGroupRecord) -> None:
        name = record.group
        known = self.streams_groups.get(name)
        if known is None and record.value is None:
            return
        after = replayed_streams(known or StreamsGroup(name), record)
        if after is not None:
            self.streams_groups[name] = after
            self.classic_groups.pop(name, None)  # replaying its offsets may have made one
            return
        del self.streams_groups[name]
        self._deadlines.set(name, None, 0)

    def apply_soft_state(self, soft_state: SoftState) -> None:
        if soft_state.next_check_ms is not None:
            self._next_check_ms = soft_state.next_check_ms
        group = soft_state.group
        if group is None:
            return
        if isinstance(group, ConsumerGroup):
            self.consumer_groups[group.id] = group
        elif isinstance(group, ShareGroup):
            self.share_groups[group.id] = group
        elif isinstance(group, StreamsGroup):
            self.streams_groups[group.id] = group
        else:
            self.classic_groups[group.id] = group
        if not soft_state.only_renews_session:
            self._deadlines.set(group.id, group.next_deadline_ms(), soft_state.now_ms)
        for each in soft_state.finished:
            self.rebalances.add(group.id, each)

    def on_loaded(self, now: Now) -> None:
        """Members get a whole new session to find their new coordinator."""
        for group in list(self.classic_groups.values()):
            draft = self.classic_draft(group, now)
            for member in group.members.values():
                draft.renew_session(member)
            self.apply_soft_state(SoftState(now.steady_ms, draft.group))
        for consumer in list(self.consumer_groups.values()):
            heartbeats.renew_deadlines(consumer_draft := self.consumer_draft(consumer, now))
            self.apply_soft_state(SoftState(now.steady_ms, consumer_draft.group))
        for share in list(self.share_groups.values()):
            share_draft = self.share_draft(share, now)
            for member_id in share.members:
                share_draft.renew_session(member_id)
            self.apply_soft_state(SoftState(now.steady_ms, share_draft.group))
        for streams in list(self.streams_groups.values()):
            streams_heartbeats.renew_deadlines(streams_draft := self.streams_draft(streams, now))
            self.apply_soft_state(SoftState(now.steady_ms, streams_draft.group))
        self._next_check_ms = now.steady_ms + self.config.offsets_retention_check_interval_ms

    # --- time

    def next_deadline_ms(self) -> int | None:
        first = self._deadlines.first()
        return self._next_check_ms if first is None else min(first[0], self._next_check_ms)

    def expire(self, now: Now) -> GroupResult:
        first = self._deadlines.first()
        if first is not None and first[0] <= now.steady_ms:
            return self._expire_group(first[1], now)
        return self._expire_offsets(now)

    def _expire_group(self, group: str, now: Now) -> GroupResult:
        share = self.share_groups.get(group)
        if share is not None:
            share_draft = self.share_draft(share, now)
            late_members = share_heartbeats.late_members(share, now.steady_ms)
            if late_members:
                share_draft.remove(late_members)
            return share_result(share_draft)
        streams = self.streams_groups.get(group)
        if streams is not None:
            streams_draft = self.streams_draft(streams, now)
            late_members = streams_heartbeats.late_members(streams, now.steady_ms)
            if late_members:
                streams_draft.remove(late_members)
            return streams_result(streams_draft)
        consumer = self.consumer_groups.get(group)
        if consumer is not None:
            consumer_draft = self.consumer_draft(consumer, now)
            late = heartbeats.late_members(consumer, now.steady_ms)
            if late:
                remove_members(
                    consumer_draft,
                    [member for member, _ in late],
                    ", ".join(why for _, why in late),
                )
            return consumer_result(consumer_draft)
        draft = self.classic_draft(self.classic_groups[group], now)
        leaves.expire(draft)
        return classic_result(draft)

    def _expire_offsets(self, now: Now) -> GroupResult:
        retention_ms = self.config.offsets_retention_minutes * 60_000
        records: list[GroupShardRecord] = []
        pending, none = self.pending_offsets(), frozenset[TopicPartition]()
        for name, group in self.classic_groups.items():
            offsets, held = self.offsets.get(name, {}), pending.get(name, none)
            records += expired_classic_records(group, offsets, held, now.wall_ms, retention_ms)
        others: list[ConsumerGroup | StreamsGroup] = [
            *self.consumer_groups.values(),
            *self.streams_groups.values(),
        ]
        for consumer in others:
            name = consumer.id
            offsets, held = self.offsets.get(name, {}), pending.get(name, none)
            records += expired_consumer_records(consumer, offsets, held, now.wall_ms, retention_ms)
        next_ms = now.steady_ms + self.config.offsets_retention_check_interval_ms
        soft_state = SoftState(now.steady_ms, next_check_ms=next_ms)
        return CoordinatorResult(tuple(records), soft_state=soft_state, may_split=True)


def _offsets_by_group(records: Iterable[GroupShardRecord]) -> dict[str, set[TopicPartition]]:
    found: dict[str, set[TopicPartition]] = {}
    for record in records:
        if isinstance(record, OffsetRecord):
            topic_partition = TopicPartition(record.topic, record.partition)
            found.setdefault(record.group, set()).add(topic_partition)
    return found
