"""Broker 1, reduced to replication: its own logs, and fetchers that follow a leader."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.client.address import Address
from penstock.clock import Clock, SystemClock
from penstock.config.replication import ReplicationConfig
from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.files import Files
from penstock.log.loading import load_logs
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
from penstock.replication.fetcher import FetcherContext
from penstock.replication.fetchers import Fetchers
from penstock.replication.follower import FollowerLogs
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition, Uuid

QUICK = ReplicationConfig(replica_fetch_backoff_ms=10, replica_fetch_wait_max_ms=50)


class FollowingBroker:
    """Follows broker 0 at `address`, unless the test makes that unreachable."""

    def __init__(
        self,
        address: Address,
        folder: Path,
        config: ReplicationConfig = QUICK,
        files: Files | None = None,
        dirs: int = 1,
        clock: Clock | None = None,
    ) -> None:
        files = files or DiskFiles()
        if not files.exists(folder):
            files.make_dir(folder)
        paths = [folder / f"follower-{number}" for number in range(dirs)]
        self.store = LogStore(files, paths, lambda _: TopicConfig(), boot_id="boot")
        load_logs(self.store, 0)
        self.partitions = Partitions(BrokerId(1), self.store)
        self.cuts: list[tuple[TopicPartition, int]] = []
        self.address: Address | None = address
        self.flush: Callable[[PartitionLog], Future[int]] = flushed
        logs = FollowerLogs(
            self.store, lambda log, offset: self.cuts.append((log.topic_partition, offset))
        )
        follower = FetcherContext(
            BrokerId(1),
            lambda: 7,
            lambda: config,
            logs,
            clock or SystemClock(),
            lambda log: self.flush(log),  # noqa: PLW0108 (a test may replace it)
        )
        self.fetchers = Fetchers(follower, lambda _: self.address, source="127.0.0.1")

    def partition(self, where: TopicPartition, topic_id: Uuid) -> Partition:
        return self.partitions.create(*where, topic_id, 0)

    def follow(self, partition: Partition, leader_epoch: int) -> None:
        partition.follow(0, leader_epoch, (0, 1), partition.partition_epoch + 1)
        self.fetchers.follow(partition)

    @asynccontextmanager
    async def copying(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.fetchers.run())
            try:
                yield
            finally:
                task.cancel()


def flushed(log: PartitionLog) -> Future[int]:
    """Syncs at once, on the loop."""
    future: Future[int] = Future()
    log.flush()
    future.set_result(log.recovery_point)
    return future


async def until(holds: Callable[[], bool], timeout_s: float = 10) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.005)


def log_files(directory: Path) -> dict[str, bytes]:
    """The segment files of a partition, as they are on disk."""
    return {each.name: each.read_bytes() for each in sorted(directory.glob("*.log"))}
