"""For authors of assignors: how a broker assigns partitions to a group's members.

    def one_each(
        subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
    ) -> GroupAssignment: ...

`group.consumer.assignors=uniform,package.module:one_each` offers it beside `uniform`; consumers
ask for it by its name (`group.remote.assignor=one_each`). See docs/groups.md.
"""

from penstock.coordinator.group.consumer.assignor.assignor import Assignor
from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import (
    GroupAssignment,
    Subscriber,
    in_order,
)
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.coordinator.group.consumer.member import Assignment, TopicIdPartition
from penstock.types import Uuid

Share, Shares = Assignment, GroupAssignment
"""The names of 0.1.0, for assignors written against it."""

__all__ = [
    "Assignment",
    "Assignor",
    "GroupAssignment",
    "Share",
    "Shares",
    "Subscriber",
    "TopicIdPartition",
    "Uuid",
    "by_range",
    "in_order",
    "uniform",
]
