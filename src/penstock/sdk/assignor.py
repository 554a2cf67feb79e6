"""For authors of assignors: how a broker shares partitions out among a group's members.

    def one_each(subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]) -> Shares:
        ...

`group.consumer.assignors=uniform,package.module:one_each` offers it beside `uniform`; consumers
ask for it by its name (`group.remote.assignor=one_each`). See docs/groups.md.
"""

from penstock.coordinator.group.consumer.assignor.assignor import Assignor
from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import Shares, Subscriber, in_order
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.coordinator.group.consumer.member import Share, TopicIdPartition
from penstock.types import Uuid

__all__ = [
    "Assignor",
    "Share",
    "Shares",
    "Subscriber",
    "TopicIdPartition",
    "Uuid",
    "by_range",
    "in_order",
    "uniform",
]
