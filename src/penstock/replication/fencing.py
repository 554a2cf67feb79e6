"""Checks whether this replica may serve a request: leadership, leader epoch, broker epoch.

Call these before `Partition.append` and before reading. They raise the error of the response.
"""

from penstock.errors import ErrorCode, KafkaError
from penstock.log.append import OffsetOutOfRange
from penstock.metadata.image import ClusterImage
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions, UnknownPartition
from penstock.replication.truncation import EpochEnd, diverging
from penstock.types import TopicPartition


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader epoch: it must refresh its metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader epoch than this broker."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class OffsetNotAvailable(KafkaError):
    """A new leader does not know yet how far its predecessor had committed (KIP-207)."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


def partition_here(
    partitions: Partitions, image: ClusterImage, topic: str, index: int
) -> Partition:
    """The partition; raise if it does not exist, or only other brokers have it."""
    found = partitions.find(topic, index)
    if found is None:
        if image.partition(TopicPartition(topic, index)) is not None:
            raise NotLeader(f"{topic}-{index} is on other brokers")
        raise UnknownPartition(f"{topic}-{index} does not exist")
    return found


def check_leader(partition: Partition, known_epoch: int = -1) -> None:
    """Raise unless this broker leads, in the epoch that the client knows (-1: unspecified)."""
    if not partition.leads or known_epoch not in {-1, partition.leader_epoch}:
        check_epoch(partition, known_epoch)
        raise NotLeader(f"{partition.topic_partition} is led by broker {partition.leader}")


def check_epoch(partition: Partition, known_epoch: int) -> None:
    """Raise if the client knows another leader epoch than this broker (-1: unspecified)."""
    if known_epoch not in {-1, partition.leader_epoch}:
        if known_epoch < partition.leader_epoch:
            raise FencedLeaderEpoch(f"epoch {known_epoch} is before {partition.leader_epoch}")
        raise UnknownLeaderEpoch(f"epoch {known_epoch} is after {partition.leader_epoch}")


def check_readable(partition: Partition, known_epoch: int) -> None:
    """Raise if the client knows another epoch, or this broker neither leads nor follows."""
    check_epoch(partition, known_epoch)
    if partition.leader_epoch < 0:
        raise NotLeader(f"{partition.topic_partition} has no leader that this broker knows of")


def check_follower(partition: Partition, replica: int, known_epoch: int, broker_epoch: int) -> None:
    """Raise if the broker has no replica of the partition, though one may be about to be assigned.

    Also raise for a request that a broker sent before it registered again: what it had then may
    be lost.
    """
    state = partition.followers.get(replica)
    if state is None:
        text = f"broker {replica} has no replica of {partition.topic_partition}"
        raise NotLeader(text) if known_epoch < 0 else UnknownLeaderEpoch(text)
    if 0 <= broker_epoch < state.broker_epoch:
        raise NotLeader(f"broker {replica} has registered again since epoch {broker_epoch}")


def check_latest_known(partition: Partition, end: int) -> None:
    """Raise if `end` must not be returned as the log's end yet (KIP-207).

    While the high watermark is that of a former epoch, more may be committed, and may have been
    read.
    """
    high_watermark = partition.log.high_watermark
    if end < partition.epoch_start_offset and high_watermark < partition.epoch_start_offset:
        raise OffsetNotAvailable(
            f"{partition.topic_partition} has committed up to {high_watermark}, "
            f"its epoch begins at {partition.epoch_start_offset}"
        )


def diverging_epoch(
    partition: Partition, last_fetched_epoch: int, fetch_offset: int
) -> EpochEnd | None:
    """Where the fetching replica's log diverges, if its fetch has a last epoch (KIP-595)."""
    if last_fetched_epoch < 0:
        return None
    log = partition.log
    found = diverging(log.epochs, log.end_offset, last_fetched_epoch, fetch_offset)
    unknown = found is not None and found.epoch < 0
    if unknown or fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(fetch_offset, log.log_start_offset, log.end_offset)
    return found
