"""Checks whether this replica may serve a request: leadership and leader epoch.

They raise the error of the response. Reads are checked further by `read_fencing.py`.
"""

from penstock.errors import ErrorCode, KafkaError
from penstock.replication.partition import Partition


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader epoch: it must refresh its metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader epoch than this broker."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


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
