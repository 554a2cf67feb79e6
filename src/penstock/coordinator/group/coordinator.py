"""The group coordinator: routes each operation to the shard of its group."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from penstock.coordinator.group.activity import CommitTime, GroupActivity
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from penstock.coordinator.group.consumer.offsets import ADMINISTRATOR, OffsetReader
from penstock.coordinator.group.errors import GroupIdNotFound, InvalidGroupId
from penstock.coordinator.group.offsets import CommittedOffset, Committer, FetchedOffsets
from penstock.coordinator.group.operation import group as groups
from penstock.coordinator.group.operation import member as members
from penstock.coordinator.group.operation import offset as offset_operations
from penstock.coordinator.group.operation import share as share_operations
from penstock.coordinator.group.operation import streams as streams_operations
from penstock.coordinator.group.rebalance_log import Rebalances, UnderWay
from penstock.coordinator.group.records import GroupShardRecord
from penstock.coordinator.group.refused_commits import RefusedCommits
from penstock.coordinator.group.result import GroupResult
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from penstock.coordinator.group.share.member import StateTopic
from penstock.coordinator.group.streams.assignors import OFFERED as OFFERED_FOR_TASKS
from penstock.coordinator.group.streams.assignors import TaskAssignors
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.keys import partition_for
from penstock.coordinator.result import EmptyReply, Now, PendingReply, Refused
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.streams_group_topology_description_update import TopologyDescription

T = TypeVar("T")

TOPIC = "__consumer_offsets"


class GroupCoordinator:
    """Every operation returns a pending reply, which has its value at once or gets it later.

    `partition_count` is that of `__consumer_offsets`, which never changes while a broker runs.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard, GroupShardRecord],
        partition_count: Callable[[], int],
        assignors: Assignors = OFFERED,
        task_assignors: TaskAssignors = OFFERED_FOR_TASKS,
    ) -> None:
        self.runtime, self.partition_count = runtime, partition_count
        self.assignors, self.task_assignors = assignors, task_assignors
        self.refused_commits = RefusedCommits()

    def partition_of(self, group: str) -> int:
        return partition_for(group, self.partition_count())

    def shards(self) -> list[GroupShard]:
        """Every shard that this broker leads; refused while one of them is loading."""
        return self.runtime.shards()

    def join(self, group: str, request: GroupJoin) -> PendingReply[Joined]:
        return self._run(
            group,
            lambda shard, now, pending: members.join(shard, now, pending, named(group), request),
        )

    def sync(self, group: str, request: GroupSync) -> PendingReply[Synced]:
        return self._run(
            group,
            lambda shard, now, pending: members.sync(shard, now, pending, named(group), request),
        )

    def heartbeat(
        self, group: str, member_id: str, generation: int, instance_id: str | None = None
    ) -> PendingReply[EmptyReply]:
        return self._run(
            group,
            lambda shard, now, pending: members.heartbeat(
                shard, now, pending, named(group), member_id, instance_id, generation
            ),
        )

    def leave(
        self, group: str, leaving: tuple[LeavingMember, ...]
    ) -> PendingReply[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, now, pending: members.leave(shard, now, pending, named(group), leaving),
        )

    def commit(
        self,
        group: str,
        committer: Committer,
        offsets: tuple[tuple[TopicPartition, CommittedOffset], ...],
        producer: ProducerIdAndEpoch | None = None,
    ) -> PendingReply[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, now, pending: offset_operations.commit(
                shard, now, pending, group, committer, offsets, producer
            ),
        )

    def fetch(
        self,
        group: str,
        wanted: Iterable[TopicPartition] | None,
        reader: OffsetReader = ADMINISTRATOR,
        *,
        require_stable: bool = False,
    ) -> PendingReply[FetchedOffsets]:
        return self._run(
            group,
            lambda shard, _, pending: offset_operations.fetch(
                shard, pending, group, wanted, reader, require_stable=require_stable
            ),
        )

    def delete_offsets(
        self, group: str, wanted: tuple[TopicPartition, ...]
    ) -> PendingReply[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, _, pending: offset_operations.delete_offsets(
                shard, pending, named(group), wanted
            ),
        )

    def partitions_deleted(self, gone: Collection[TopicPartition]) -> None:
        """Remove the offsets of deleted topics: they mean nothing to a new topic of that name."""
        deleted_ms = self.runtime.now().wall_ms
        self.runtime.run_everywhere(
            "forgetting the offsets of deleted topics",
            lambda shard, _, pending: offset_operations.remove_deleted(
                shard, pending, gone, deleted_ms
            ),
        )

    def delete_group(self, group: str) -> PendingReply[EmptyReply]:
        return self._run(group, lambda shard, _, pending: groups.delete(shard, pending, group))

    def describe(self, group: str) -> PendingReply[ClassicGroup]:
        return self._run(group, lambda shard, _, pending: groups.describe(shard, pending, group))

    def consumer_heartbeat(
        self, group: str, request: ConsumerHeartbeat
    ) -> PendingReply[ConsumerHeartbeatReply]:
        return self._run(
            group,
            lambda shard, now, pending: members.consumer_heartbeat(
                shard, now, pending, group, request
            ),
        )

    def describe_consumer(self, group: str) -> PendingReply[ConsumerGroup]:
        return self._run(
            group, lambda shard, _, pending: groups.describe_consumer(shard, pending, named(group))
        )

    def share_heartbeat(
        self, group: str, request: ShareHeartbeat
    ) -> PendingReply[ShareHeartbeatReply]:
        return self._run(
            group,
            lambda shard, now, pending: share_operations.heartbeat(
                shard, now, pending, group, request
            ),
        )

    def describe_share(self, group: str) -> PendingReply[ShareGroup]:
        return self._run(
            group, lambda shard, _, pending: share_operations.describe(shard, pending, named(group))
        )

    def next_share_epoch(self, group: str, *, creates: bool = False) -> PendingReply[ShareGroup]:
        """The share group in a new epoch, for new state; refused while it has members."""
        return self._run(
            group,
            lambda shard, now, pending: share_operations.next_epoch(
                shard, now, pending, named(group), creates=creates
            ),
        )

    def is_share(self, group: str) -> bool:
        """Whether this is a share group that is coordinated here."""
        return any(group in shard.share_groups for shard in self.runtime.loaded_shards())

    def share_with_state(
        self, group: str, topics: Mapping[Uuid, StateTopic]
    ) -> PendingReply[EmptyReply]:
        return self._run(
            group,
            lambda shard, now, pending: share_operations.with_state(
                shard, now, pending, group, topics
            ),
        )

    def share_without_topics(
        self, group: str, topics: Collection[Uuid]
    ) -> PendingReply[EmptyReply]:
        return self._run(
            group,
            lambda shard, now, pending: share_operations.without_topics(
                shard, now, pending, group, topics
            ),
        )

    def streams_heartbeat(
        self, group: str, request: StreamsHeartbeat
    ) -> PendingReply[StreamsHeartbeatReply]:
        return self._run(
            group,
            lambda shard, now, pending: streams_operations.heartbeat(
                shard, now, pending, group, request
            ),
        )

    def describe_streams(self, group: str) -> PendingReply[StreamsGroup]:
        return self._run(
            group,
            lambda shard, _, pending: streams_operations.describe(shard, pending, named(group)),
        )

    def describe_topology(
        self, group: str, member_id: str, epoch: int, description: TopologyDescription
    ) -> PendingReply[EmptyReply]:
        return self._run(
            group,
            lambda shard, now, pending: streams_operations.describe_topology(
                shard, now, pending, group, member_id, epoch, description
            ),
        )

    def rebalances(self, group: str) -> Rebalances:
        shard = self.runtime.shard(self.partition_of(group))
        known = shard.consumer_groups.get(group) or shard.classic_groups.get(group)
        if known is None:
            raise GroupIdNotFound(f"Group {group} not found.")
        under_way = None
        if known.rebalance_reason:
            for_ms = self.runtime.now().steady_ms - known.rebalance_began_ms
            under_way = UnderWay(known.rebalance_reason, for_ms)
        return Rebalances(group, shard.rebalances.of(group), under_way)

    def activity(self, group: str) -> GroupActivity:
        history = self.rebalances(group)
        offsets = self.runtime.shard(self.partition_of(group)).offsets.get(group, {})
        commits = tuple(CommitTime(*tp, each.commit_ms) for tp, each in offsets.items())
        return GroupActivity(history, self.refused_commits.of(group), commits)

    def _run(
        self, group: str, operation: Callable[[GroupShard, Now, PendingReply[T]], GroupResult]
    ) -> PendingReply[T]:
        return self.runtime.run(self.partition_of(group), operation)


def named(group: str) -> str:
    """Refuse an empty group id. Old clients could commit and fetch offsets under one."""
    if not group:
        raise InvalidGroupId("the group id is empty")
    return group
