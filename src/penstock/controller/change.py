"""What the controller tells brokers, as values.

On one node the broker in the same process carries a change out; in a cluster it becomes
LeaderAndIsr, UpdateMetadata and StopReplica. The controller knows no difference.
"""

from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from penstock.metadata.image import ClusterImage, Partition
from penstock.types import BrokerId, TopicPartition, Uuid

DELETED_EPOCH = -2


class PartitionChange(Struct, frozen=True):
    """Who leads and replicates a partition from now on, at `state.leader_epoch`."""

    where: TopicPartition
    topic_id: Uuid
    state: Partition
    is_new: bool = False
    """Nobody has a log of it yet."""

    def is_new_on(self, broker: BrokerId) -> bool:
        """It has no log of it that counts: the partition is new, or is moving there."""
        return self.is_new or broker in self.state.adding_replicas


class StoppedReplicas(Struct, frozen=True):
    """A partition whose replicas on these brokers stop; unless `delete` is false, their logs go."""

    where: TopicPartition
    topic_id: Uuid
    replicas: tuple[BrokerId, ...]
    delete: bool = True
    leader_epoch: int = DELETED_EPOCH
    """Of the partition when it was decided; a topic that goes, goes in whatever epoch it is."""


class StateChange(Struct, frozen=True, kw_only=True):
    """A decision that is already in the store. `image` is the cluster with it."""

    image: ClusterImage
    partitions: tuple[PartitionChange, ...] = ()
    told: tuple[TopicPartition, ...] = ()
    """Partitions whose replicas go on as they are: another ISR, for clients to know."""
    stopped: tuple[StoppedReplicas, ...] = ()
    joined: frozenset[BrokerId] = frozenset()
    """Brokers that know nothing yet: they are told of everything in the image."""
    topic_configs: tuple[str, ...] = ()
    """Topics whose own settings have changed."""
    broker_configs: bool = False
    """Brokers' settings have changed, and with them perhaps what topics get by default."""


class Brokers(Protocol):
    """Those who carry decisions out. Returns when this broker has done so and each other one has
    its orders in the queue: a controller that waited for the slowest would serve nobody.
    """

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:
        """The replicas of this broker whose log directory has failed; others tell of theirs."""
        ...

    def resign(self) -> None:
        """Say nothing more: another controller does."""
        ...
