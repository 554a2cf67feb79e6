"""Members of streams groups without a network: they follow the replies to heartbeats."""

from dataclasses import dataclass, field
from typing import Any

from penstock.config.group import GroupConfig
from penstock.config.streams import StreamsConfig
from penstock.coordinator.group.consumer.group import GroupTopic
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.streams.assignors import OFFERED, TaskAssignors
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.group.streams.records import Topology
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment
from penstock.errors import KafkaError
from penstock.testing.loop import ManualLoop
from penstock.wire.messages.streams_group_topology_value import Subtopology, TopicInfo
from support.groups.consumer_members import topic
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog, coordinator

AT_ONCE = StreamsConfig(
    group_streams_assignment_interval_ms=0, group_streams_initial_rebalance_delay_ms=0
)
"""Most scenarios assign at once after each change."""


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch, list(subtopologies or (reading("0", "t"),)))


def reading(name: str, *sources: str, **fields: Any) -> Subtopology:
    return Subtopology(name, list(sources), **fields)


def internal(name: str, partitions: int = 0) -> TopicInfo:
    return TopicInfo(name, partitions)


@dataclass
class StreamsCluster:
    """A coordinator with a log in memory and manual time, and the cluster's topics."""

    topics: dict[str, GroupTopic] = field(default_factory=lambda: {"t": topic("t", 4)})
    config: StreamsConfig = AT_ONCE
    assignors: TaskAssignors = OFFERED

    def __post_init__(self) -> None:
        self.loop, self.log = ManualLoop(), MemoryLog()
        self.start()

    def start(self) -> None:
        """Start, or restart from the log alone."""
        self.loop = ManualLoop(self.loop.now_s)
        self.groups: GroupCoordinator = coordinator(
            self.log,
            self.loop,
            LoopClock(self.loop),
            GroupConfig(),
            lambda: self.topics,
            streams=self.config,
            task_assignors=self.assignors,
        )
        self.loop.advance()

    @property
    def group(self) -> StreamsGroup:
        return self.groups.shards()[0].streams_groups[GROUP]

    def pass_ms(self, milliseconds: int) -> None:
        self.loop.advance(milliseconds / 1000)

    def set_topics(self, **counts: int) -> None:
        self.topics = {name: topic(name, count) for name, count in counts.items()}

    def beat(self, **fields: Any) -> StreamsHeartbeatReply:
        """The reply to a heartbeat; an error is raised."""
        reply = self.groups.streams_heartbeat(GROUP, StreamsHeartbeat(**fields)).reply
        if isinstance(reply, KafkaError):
            raise reply
        assert reply is not None
        return reply


@dataclass
class StreamsThread:
    """A client's view: its epoch, and the tasks that it owns."""

    cluster: StreamsCluster
    id: str
    process: str = ""
    topology: Topology = field(default_factory=topology)
    epoch: int = 0
    has: TaskAssignment = NOTHING

    def join(self, **fields: Any) -> StreamsHeartbeatReply:
        self.epoch, self.has = 0, NOTHING
        given = {
            "epoch": 0,
            "rebalance_timeout_ms": 5000,
            "topology": self.topology,
            "process_id": self.process or self.id,
            **fields,
        }
        return self.beat(**given)

    def beat(self, **fields: Any) -> StreamsHeartbeatReply:
        """States what it owns; takes its tasks and gives up the rest at once."""
        stated = {
            "member_id": self.id,
            "epoch": self.epoch,
            "active": self.has.active,
            "standby": self.has.standby,
            "warmup": self.has.warmup,
            **fields,
        }
        reply = self.cluster.beat(**stated)
        self.epoch = reply.epoch
        if reply.assignment is not None:
            self.has = reply.assignment
        return reply


def settle(*threads: StreamsThread) -> None:
    """All send heartbeats until the group is stable; a few rounds must suffice."""
    for _ in range(6):
        for each in threads:
            each.beat()
        if threads[0].cluster.group.state.value == "Stable":
            return
    raise AssertionError(f"{threads[0].cluster.group} is not stable")
