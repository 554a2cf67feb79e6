"""For authors of assignors: how a broker assigns partitions, or tasks, to a group's members.

    def one_each(
        subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
    ) -> GroupAssignment: ...

`group.consumer.assignors=uniform,package.module:one_each` offers it beside `uniform`; consumers
ask for it by its name (`group.remote.assignor=one_each`).

    def by_rack(
        members: Mapping[str, StreamsSubscriber], topology: TopologyTasks, /
    ) -> Mapping[str, TaskAssignment]: ...

is a `TaskAssignor`, for Kafka Streams: `group.streams.assignors=sticky,package.module:by_rack`, and
the group's setting `streams.assignor.name=by_rack`. See docs/groups.md.
"""

from penstock.coordinator.group.consumer.assignor.assignor import Assignor
from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import (
    GroupAssignment,
    Subscriber,
    in_order,
)
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.coordinator.group.consumer.member import Assignment
from penstock.coordinator.group.streams.assignor import sticky
from penstock.coordinator.group.streams.assignors import TaskAssignor
from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import TaskAssignment, TaskId
from penstock.types import TopicIdPartition, Uuid

Share, Shares = Assignment, GroupAssignment
"""The names of 0.1.0, for assignors written against it."""

__all__ = [
    "Assignment",
    "Assignor",
    "GroupAssignment",
    "Share",
    "Shares",
    "StreamsSubscriber",
    "Subscriber",
    "TaskAssignment",
    "TaskAssignor",
    "TaskId",
    "TopicIdPartition",
    "TopologyTasks",
    "Uuid",
    "by_range",
    "in_order",
    "sticky",
    "uniform",
]
