"""Computes the partitions, disk space and bandwidth that a workload needs. Pure."""

from dataclasses import dataclass, fields
from math import ceil, isfinite

from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Incoming load, retention, readers, and the cluster that serves them."""

    messages_per_second: float
    message_bytes: float
    retention_s: float
    replication_factor: int = 3
    compression: float = 1.0
    """The compression ratio: bytes before compression per byte after it."""
    spare: float = 0.2
    """The share of the disk to keep free, for peaks, indexes and reassignments."""
    consumer_groups: int = 1
    brokers: int = 3
    partition_in_bytes_per_second: float = 10 * 1024 * 1024
    """The throughput of a producer for one partition; measure it."""
    partition_out_bytes_per_second: float = 20 * 1024 * 1024
    """The throughput of a consumer, including processing, for one partition; measure it."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isfinite(getattr(self, each.name)):
                raise ConfigError(f"{each.name} must be a finite number")
        for name in ("messages_per_second", "message_bytes", "retention_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative")
        if self.brokers < 1 or not 1 <= self.replication_factor <= self.brokers:
            raise ConfigError(
                f"replication factor {self.replication_factor} must be from 1 to the number of "
                f"brokers, {self.brokers}"
            )
        if self.compression < 1:
            raise ConfigError(
                "compression must be 1 or more: bytes before compression per byte after it"
            )
        if not 0 <= self.spare < 1:
            raise ConfigError("spare must be a share: at least 0, and below 1")
        if min(self.partition_in_bytes_per_second, self.partition_out_bytes_per_second) <= 0:
            raise ConfigError("the throughput of a partition must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The needs of a workload, for the whole cluster or per broker."""

    in_bytes_per_second: float
    """From producers, compressed."""
    replication_bytes_per_second: float
    out_bytes_per_second: float
    """To consumers only; followers are in `replication_bytes_per_second`."""
    broker_in_bytes_per_second: float
    broker_out_bytes_per_second: float
    records_kept: int
    stored_bytes: int
    disk_bytes: int
    """Including the spare share."""
    broker_disk_bytes: int
    partitions: int
    consumers: int
    """The most consumers that can read in parallel in one group: one per partition."""


def capacity(load: Workload) -> Capacity:
    """Messages * retention * size * replicas / compression, plus the spare share."""
    came = load.messages_per_second * load.message_bytes / load.compression
    copied = came * (load.replication_factor - 1)
    read = came * load.consumer_groups
    kept = load.messages_per_second * load.retention_s
    stored = kept * load.message_bytes * load.replication_factor / load.compression
    disk = stored / (1 - load.spare)
    if not isfinite(disk):
        raise ConfigError("the workload is too large to calculate with")
    partitions = partition_count(came, load)
    return Capacity(
        in_bytes_per_second=came,
        replication_bytes_per_second=copied,
        out_bytes_per_second=read,
        broker_in_bytes_per_second=(came + copied) / load.brokers,
        broker_out_bytes_per_second=(read + copied) / load.brokers,
        records_kept=round(kept),
        stored_bytes=ceil(stored),
        disk_bytes=ceil(disk),
        broker_disk_bytes=ceil(disk / load.brokers),
        partitions=partitions,
        consumers=partitions,
    )


def partition_count(in_bytes_per_second: float, load: Workload) -> int:
    """Enough partitions for producers and consumers, as a multiple of the number of brokers."""
    needed = max(
        in_bytes_per_second / load.partition_in_bytes_per_second,
        in_bytes_per_second * load.compression / load.partition_out_bytes_per_second,
    )
    return max(ceil(needed / load.brokers), 1) * load.brokers
