"""The HTTP pages about a topic: its replicas on this broker, and the fetches of its partitions."""

from msgspec import Struct

from penstock.broker.waiters import Waiters
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId


class Replica(Struct, frozen=True):
    """One replica as its own broker sees it; `isr` is empty on a follower."""

    broker: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    follower_ends: dict[int, int] = {}
    """Followers' end offsets, which a leader knows from their fetches; -1 before the first."""


class PartitionFetches(Struct, frozen=True):
    """Consumer fetches from a partition that is led here."""

    topic: str
    partition: int
    bytes_out: int
    """Bytes since the broker started."""
    waiting_fetches: int
    """Consumers that have read everything and wait for more."""


def replicas(broker_id: BrokerId, partitions: Partitions, topic: str) -> list[Replica]:
    return [_replica(broker_id, each) for each in partitions if each.topic_partition.topic == topic]


def fetches(partitions: Partitions, waiters: Waiters, topic: str) -> list[PartitionFetches]:
    return [
        PartitionFetches(
            *each.topic_partition, each.bytes_out, waiters.fetching(each.topic_partition)
        )
        for each in partitions
        if each.leads and each.topic_partition.topic == topic
    ]


def _replica(broker_id: BrokerId, partition: Partition) -> Replica:
    log = partition.log
    return Replica(
        broker_id,
        *partition.topic_partition,
        partition.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        log.log_start_offset,
        log.high_watermark,
        log.end_offset,
        {broker: state.end_offset for broker, state in partition.followers.items()},
    )
