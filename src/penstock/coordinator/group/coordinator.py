"""The coordinator of groups: finds the shard of a group and has it decide."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import Heartbeat, HeartbeatReply
from penstock.coordinator.group.consumer.offsets import ADMINISTRATOR, Reader
from penstock.coordinator.group.decision import Decision, Refused
from penstock.coordinator.group.join import Joining
from penstock.coordinator.group.member import Joined, Synced
from penstock.coordinator.group.membership import Leaving, Syncing
from penstock.coordinator.group.offsets import CommittedOffset, Committer, FetchedOffsets
from penstock.coordinator.group.operation import group as groups
from penstock.coordinator.group.operation import member as members
from penstock.coordinator.group.operation import offset as offset_operations
from penstock.coordinator.group.rebalance_log import Rebalances, UnderWay
from penstock.coordinator.group.records import StoredRecord
from penstock.coordinator.group.refusal import GroupIdNotFound, InvalidGroupId
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.keys import partition_for
from penstock.coordinator.outcome import Done, Now, Ticket
from penstock.coordinator.runtime import Runtime
from penstock.coordinator.storage import Producer
from penstock.types import TopicPartition

T = TypeVar("T")

TOPIC = "__consumer_offsets"


class GroupCoordinator:
    """Every call gives a ticket, whose reply is there at once or comes later.

    `partition_count` is that of `__consumer_offsets`, which never changes while a broker runs.
    """

    def __init__(
        self,
        runtime: Runtime[GroupShard, StoredRecord],
        partition_count: Callable[[], int],
        assignors: Assignors = OFFERED,
    ) -> None:
        self.runtime, self.partition_count = runtime, partition_count
        self.assignors = assignors

    def partition_of(self, group: str) -> int:
        return partition_for(group, self.partition_count())

    def shards(self) -> list[GroupShard]:
        """All that this broker coordinates; refused while some of it is being loaded."""
        return self.runtime.shards()

    def join(self, group: str, asked: Joining) -> Ticket[Joined]:
        return self._run(
            group, lambda shard, now, ticket: members.join(shard, now, ticket, named(group), asked)
        )

    def sync(self, group: str, asked: Syncing) -> Ticket[Synced]:
        return self._run(
            group, lambda shard, now, ticket: members.sync(shard, now, ticket, named(group), asked)
        )

    def heartbeat(self, group: str, who: Leaving, generation: int) -> Ticket[Done]:
        return self._run(
            group,
            lambda shard, now, ticket: members.heartbeat(
                shard, now, ticket, named(group), who, generation
            ),
        )

    def leave(self, group: str, leaving: tuple[Leaving, ...]) -> Ticket[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, now, ticket: members.leave(shard, now, ticket, named(group), leaving),
        )

    def commit(
        self,
        group: str,
        committer: Committer,
        offsets: tuple[tuple[TopicPartition, CommittedOffset], ...],
        producer: Producer | None = None,
    ) -> Ticket[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, now, ticket: offset_operations.commit(
                shard, now, ticket, group, committer, offsets, producer
            ),
        )

    def fetch(
        self,
        group: str,
        wanted: Iterable[TopicPartition] | None,
        reader: Reader = ADMINISTRATOR,
        *,
        require_stable: bool = False,
    ) -> Ticket[FetchedOffsets]:
        return self._run(
            group,
            lambda shard, _, ticket: offset_operations.fetch(
                shard, ticket, group, wanted, reader, require_stable=require_stable
            ),
        )

    def delete_offsets(
        self, group: str, wanted: tuple[TopicPartition, ...]
    ) -> Ticket[tuple[Refused, ...]]:
        return self._run(
            group,
            lambda shard, _, ticket: offset_operations.delete_offsets(
                shard, ticket, named(group), wanted
            ),
        )

    def partitions_deleted(self, gone: Collection[TopicPartition]) -> None:
        """Topics are no more: offsets in them mean nothing to a topic made anew."""
        deleted_ms = self.runtime.now().wall_ms
        self.runtime.run_everywhere(
            "forgetting the offsets of deleted topics",
            lambda shard, _, ticket: offset_operations.forget(shard, ticket, gone, deleted_ms),
        )

    def delete_group(self, group: str) -> Ticket[Done]:
        return self._run(group, lambda shard, _, ticket: groups.delete(shard, ticket, group))

    def describe(self, group: str) -> Ticket[ClassicGroup]:
        return self._run(group, lambda shard, _, ticket: groups.describe(shard, ticket, group))

    def consumer_heartbeat(self, group: str, asked: Heartbeat) -> Ticket[HeartbeatReply]:
        return self._run(
            group,
            lambda shard, now, ticket: members.consumer_heartbeat(shard, now, ticket, group, asked),
        )

    def describe_consumer(self, group: str) -> Ticket[ConsumerGroup]:
        return self._run(
            group, lambda shard, _, ticket: groups.describe_consumer(shard, ticket, named(group))
        )

    def rebalances(self, group: str) -> Rebalances:
        shard = self.runtime.shard(self.partition_of(group))
        known = shard.consumer_groups.get(group) or shard.groups.get(group)
        if known is None:
            raise GroupIdNotFound(f"Group {group} not found.")
        under_way = None
        if known.rebalance_reason:
            for_ms = self.runtime.now().steady_ms - known.rebalance_began_ms
            under_way = UnderWay(known.rebalance_reason, for_ms)
        return Rebalances(group, shard.rebalances.of(group), under_way)

    def _run(
        self, group: str, operation: Callable[[GroupShard, Now, Ticket[T]], Decision]
    ) -> Ticket[T]:
        return self.runtime.run(self.partition_of(group), operation)


def named(group: str) -> str:
    """Members need a group with a name; offsets were once committed without."""
    if not group:
        raise InvalidGroupId("a group needs a name")
    return group
