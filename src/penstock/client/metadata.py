"""The cluster as a Metadata response describes it: brokers, topics and leaders."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.address import Address
from penstock.client.errors import BrokerRefused, check
from penstock.errors import ErrorCode
from penstock.types import BrokerId, LeaderEpoch, Uuid
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A live broker."""

    id: BrokerId
    address: Address
    rack: str | None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Leader and replicas of a partition; `leader` may be `NO_LEADER`."""

    index: int
    leader: BrokerId
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    offline: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic and its partitions, by index."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: Mapping[int, PartitionMetadata]

    def leader(self, index: int) -> BrokerId:
        """The leader of the partition; raises if the partition or its leader is missing."""
        partition = self.partitions.get(index)
        if partition is None:
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self.name}-{index}")
        if partition.leader == NO_LEADER:
            raise BrokerRefused(ErrorCode.LEADER_NOT_AVAILABLE, f"{self.name}-{index}")
        return partition.leader


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """Cluster id, controller and brokers."""

    id: str | None
    controller: BrokerId
    brokers: Mapping[BrokerId, BrokerNode]


def metadata_request(names: Iterable[str] | None, *, create: bool = False) -> MetadataRequest:
    """Request topics by name, None for all; `create` lets the broker create them."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def cluster_of(response: MetadataResponse) -> ClusterMetadata:
    check(response.error_code, "metadata of the cluster")
    brokers = (
        BrokerNode(BrokerId(each.node_id), Address(each.host, each.port), each.rack)
        for each in response.brokers
    )
    return ClusterMetadata(
        response.cluster_id,
        BrokerId(response.controller_id),
        {broker.id: broker for broker in brokers},
    )


def topic_of(response: MetadataResponseTopic) -> TopicMetadata:
    by_id = response.topic_id.hex() if any(response.topic_id) else "''"
    check(response.error_code, f"topic {response.name or by_id}")
    partitions = sorted(map(_partition, response.partitions), key=lambda each: each.index)
    return TopicMetadata(
        response.name or "",
        response.topic_id,
        response.is_internal,
        {partition.index: partition for partition in partitions},
    )


def _partition(response: MetadataResponsePartition) -> PartitionMetadata:
    # Ignores the partition's error code: leader and offline replicas say the same.
    return PartitionMetadata(
        response.partition_index,
        BrokerId(response.leader_id),
        LeaderEpoch(response.leader_epoch),
        tuple(map(BrokerId, response.replica_nodes)),
        tuple(map(BrokerId, response.isr_nodes)),
        tuple(map(BrokerId, response.offline_replicas)),
    )


def replication_factor(topic: TopicMetadata) -> int:
    """The maximum of its partitions: a partition that is being moved has more replicas."""
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)
