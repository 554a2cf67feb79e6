"""All fetchers of a broker: `num.replica.fetchers` for each leader that it follows."""

import asyncio
import logging
from collections.abc import Callable
from zlib import crc32

from penstock.client.address import Address
from penstock.client.connection import Connection, connect
from penstock.client.errors import ConnectionFailed
from penstock.replication.fetcher import Fetcher, Follower
from penstock.replication.partition import Partition
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


class Fetchers:
    """Gives each followed partition to a fetcher of its leader. Belongs to the event loop.

    `address_of` tells where a broker can be reached now, None: it cannot. Connections start at
    `source`, so that each link between brokers has two addresses of its own.
    """

    def __init__(
        self,
        follower: Follower,
        address_of: Callable[[int], Address | None],
        source: str | None = None,
    ) -> None:
        self._follower, self._address_of, self._source = follower, address_of, source
        self._by_leader: dict[tuple[int, int], Fetcher] = {}
        self._of: dict[TopicPartition, Fetcher] = {}
        self._changed = asyncio.Event()

    def follow(self, partition: Partition) -> None:
        """Copy the partition from its leader, from now on."""
        where = partition.topic_partition
        number = crc32(where.topic.encode()) + where.partition
        key = (partition.leader, number % self._follower.config().num_replica_fetchers)
        fetcher = self._by_leader.get(key)
        if fetcher is None:
            leader = key[0]
            fetcher = Fetcher(leader, self._follower, lambda: self._connect(leader))
            self._by_leader[key] = fetcher
        if self._of.get(where) is not fetcher:
            self.stop(where)
            self._of[where] = fetcher
        fetcher.add(partition)
        self._changed.set()

    def stop(self, where: TopicPartition) -> None:
        """Copy it no more: it leads now, or is gone."""
        fetcher = self._of.pop(where, None)
        if fetcher is not None:
            fetcher.remove(where)
            self._changed.set()

    async def run(self) -> None:
        """Keep a task for each fetcher that has partitions, until cancelled."""
        running: dict[Fetcher, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                for key, fetcher in list(self._by_leader.items()):
                    if fetcher not in running:
                        running[fetcher] = tasks.create_task(self._supervised(fetcher))
                    if not fetcher.is_used:
                        del self._by_leader[key]
                        running.pop(fetcher).cancel()
                await self._changed.wait()
                self._changed.clear()

    async def _supervised(self, fetcher: Fetcher) -> None:
        while True:
            try:
                await fetcher.run()
            except Exception:  # the boundary around a background loop
                logger.exception("copying from broker %d failed, and goes on", fetcher.leader)
            await asyncio.sleep(self._follower.config().replica_fetch_backoff_ms / 1000)

    async def _connect(self, leader: int) -> Connection:
        address = self._address_of(leader)
        if address is None:
            raise ConnectionFailed(f"broker {leader} is not registered")
        return await connect(
            address,
            client_id=f"broker-{self._follower.broker_id}-fetcher",
            source=self._source,
            timeout_ms=self._follower.config().replica_socket_timeout_ms,
        )
