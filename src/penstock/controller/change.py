"""What the controller tells brokers, as values.

On one node the broker in the same process carries a change out; in a cluster it becomes
LeaderAndIsr, UpdateMetadata and StopReplica. The controller knows no difference.
"""

from typing import Protocol

from msgspec import Struct

from penstock.metadata.image import ClusterImage, Partition
from penstock.types import TopicPartition, Uuid


class PartitionChange(Struct, frozen=True):
    """Who leads and replicates a partition from now on, at `state.leader_epoch`."""

    where: TopicPartition
    topic_id: Uuid
    state: Partition
    is_new: bool = False
    """Nobody has a log of it yet."""


class StoppedReplicas(Struct, frozen=True):
    """A partition whose replicas on these brokers stop; unless `delete` is false, their logs go."""

    where: TopicPartition
    topic_id: Uuid
    replicas: tuple[int, ...]
    delete: bool = True


class StateChange(Struct, frozen=True, kw_only=True):
    """A decision that is already in the store. `image` is the cluster with it."""

    image: ClusterImage
    partitions: tuple[PartitionChange, ...] = ()
    stopped: tuple[StoppedReplicas, ...] = ()
    topic_configs: tuple[str, ...] = ()
    """Topics whose own settings have changed."""
    broker_configs: bool = False
    """Brokers' settings have changed, and with them perhaps what topics get by default."""


class Brokers(Protocol):
    """Those who carry decisions out. Returns when the brokers that are alive have done so."""

    async def apply(self, change: StateChange) -> None: ...
