"""The controller's decisions for brokers, as values.

On one node the broker in the same process carries a change out; in a cluster the change becomes
LeaderAndIsr, UpdateMetadata and StopReplica requests. The controller treats both alike.
"""

from collections.abc import Collection, Iterable
from typing import Protocol

from msgspec import Struct

from penstock.metadata.image import ClusterImage, PartitionRegistration
from penstock.types import BrokerId, TopicPartition, Uuid

EPOCH_DURING_DELETE = -2


class PartitionChange(Struct, frozen=True):
    """A partition's new leader, ISR and replicas, at `state.leader_epoch`."""

    topic_partition: TopicPartition
    topic_id: Uuid
    state: PartitionRegistration
    is_new: bool = False
    """No replica has a log of it yet."""

    def is_new_on(self, broker: BrokerId) -> bool:
        """The broker starts with an empty log: the partition is new, or is being moved there.

        A replica in the ISR has a log. If its directory is offline, it must not begin another.
        """
        state = self.state
        return self.is_new or (broker in state.adding_replicas and broker not in state.isr)


class StoppedReplicas(Struct, frozen=True):
    """Replicas that these brokers stop; they delete the logs too, unless `delete` is false."""

    topic_partition: TopicPartition
    topic_id: Uuid
    replicas: tuple[BrokerId, ...]
    delete: bool = True
    leader_epoch: int = EPOCH_DURING_DELETE
    """The partition's epoch at the decision. The deletion of a topic holds in any epoch."""


class StateChange(Struct, frozen=True, kw_only=True):
    """A decision that is already in the store. `image` includes it."""

    image: ClusterImage
    partitions: tuple[PartitionChange, ...] = ()
    metadata_only: tuple[TopicPartition, ...] = ()
    """Partitions that change only for clients (UpdateMetadata), such as by another ISR. Their
    replicas continue as they are.
    """
    stopped: tuple[StoppedReplicas, ...] = ()
    joined: frozenset[BrokerId] = frozenset()
    """Brokers that have just registered. They receive everything in the image."""
    topic_configs: tuple[str, ...] = ()
    """Topics whose own settings have changed."""
    broker_configs: bool = False
    """Settings of brokers have changed, and with them perhaps the defaults of topics."""


class Brokers(Protocol):
    """The brokers that carry decisions out."""

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:
        """Returns once this broker has applied the change and the requests to all others are
        queued: waiting for the slowest broker would block the controller.

        The result lists this broker's replicas whose log directory has failed. Other brokers
        report theirs in their responses.
        """
        ...

    def resign(self) -> None:
        """Send nothing more: another controller takes over."""
        ...


def all_partitions(image: ClusterImage) -> Iterable[PartitionChange]:
    """Every partition that has had a leader, as it is."""
    for topic in image.topics.values():
        for index, state in topic.partitions.items():
            if state.partition_epoch >= 0:
                yield PartitionChange(TopicPartition(topic.name, index), topic.id, state)
