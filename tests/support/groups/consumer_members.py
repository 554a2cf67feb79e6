"""Members of the consumer protocol without a network: they follow the replies to heartbeats."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.group import GroupConfig
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import ConsumerGroup, GroupTopic
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.shard import GroupShard
from penstock.errors import KafkaError
from penstock.testing.loop import ManualLoop
from penstock.types import Uuid
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog, coordinator

CONFIG = GroupConfig(group_consumer_assignment_interval_ms=0)
"""Most scenarios assign at once after each change."""


@dataclass(frozen=True)
class KnownTopic:
    """A topic as a group sees it."""

    id: Uuid
    partitions: range


def topic(name: str, partitions: int) -> KnownTopic:
    return KnownTopic(Uuid(name.encode().rjust(16, b".")), range(partitions))


@dataclass
class Cluster:
    """A coordinator with a log in memory and manual time, and the cluster's topics."""

    topics: dict[str, GroupTopic] = field(default_factory=lambda: {"t": topic("t", 4)})
    config: GroupConfig = CONFIG
    assignors: Assignors = OFFERED
    settings: Callable[[str], ConsumerGroupConfig] | None = None

    def __post_init__(self) -> None:
        self.loop, self.log = ManualLoop(), MemoryLog()
        self.start()

    def start(self) -> None:
        """Starts, or restarts from the log alone; the old coordinator's timers are gone."""
        self.loop = ManualLoop(self.loop.now_s)
        self.groups: GroupCoordinator = coordinator(
            self.log,
            self.loop,
            LoopClock(self.loop),
            self.config,
            lambda: self.topics,
            self.assignors,
            self.settings,
        )
        self.loop.advance()

    @property
    def shard(self) -> GroupShard:
        return self.groups.shards()[0]

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.consumer_groups[GROUP]

    def pass_ms(self, milliseconds: int) -> None:
        self.loop.advance(milliseconds / 1000)

    def set_topics(self, **counts: int) -> None:
        self.topics = {name: topic(name, count) for name, count in counts.items()}

    def beat(self, **fields: Any) -> ConsumerHeartbeatReply:
        """The reply to a heartbeat; an error is raised."""
        reply = self.groups.consumer_heartbeat(GROUP, ConsumerHeartbeat(**fields)).reply
        if isinstance(reply, KafkaError):
            raise reply
        assert reply is not None
        return reply


@dataclass
class Consumer:
    """A client's view: its epoch, and the partitions that it owns."""

    cluster: Cluster
    id: str
    instance_id: str | None = None
    topics: frozenset[str] = frozenset({"t"})
    epoch: int = 0
    has: Assignment = NO_PARTITIONS

    def join(self, **fields: Any) -> ConsumerHeartbeatReply:
        self.epoch, self.has = 0, NO_PARTITIONS
        wanted = {"topics": self.topics} | fields
        return self._applied(
            self.cluster.beat(
                member_id=self.id,
                instance_id=self.instance_id,
                epoch=0,
                rebalance_timeout_ms=5000,
                owned=NO_PARTITIONS,
                **wanted,
            )
        )

    def beat(self, **fields: Any) -> ConsumerHeartbeatReply:
        """States what it owns; takes its assignment and revokes the rest at once."""
        stated = {"owned": self.has} | fields
        return self._applied(
            self.cluster.beat(
                member_id=self.id, instance_id=self.instance_id, epoch=self.epoch, **stated
            )
        )

    def leave(self, epoch: int = -1) -> None:
        self.cluster.beat(member_id=self.id, instance_id=self.instance_id, epoch=epoch)
        self.epoch, self.has = 0, NO_PARTITIONS

    def _applied(self, reply: ConsumerHeartbeatReply) -> ConsumerHeartbeatReply:
        self.epoch = reply.epoch
        if reply.assignment is not None:
            self.has = reply.assignment
        return reply


def settle(*consumers: Consumer) -> None:
    """All send heartbeats until the group is stable; a few rounds must suffice."""
    for _ in range(6):
        for each in consumers:
            each.beat()
        if consumers[0].cluster.group.state.value == "Stable":
            return
    raise AssertionError(f"{consumers[0].cluster.group} is not stable")


def durable(group: ConsumerGroup) -> tuple[Any, ...]:
    """The part of a group that its records hold."""
    members = {
        name: msgspec.structs.replace(each, deadline_ms=0, rebalance_deadline_ms=None)
        for name, each in group.members.items()
    }
    target: dict[str, Assignment] = dict(group.target)
    return group.epoch, group.metadata_hash, group.target_epoch, members, target, group.regexes
