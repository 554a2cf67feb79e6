"""All fetchers of a broker: `num.replica.fetchers` per leader that it follows."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from penstock.client.address import Address
from penstock.client.connection import Connection, connect
from penstock.client.errors import ConnectionFailed
from penstock.client.security import ClientSecurity, no_security
from penstock.errors import KafkaError
from penstock.replication.fetcher import Fetcher, FetcherContext
from penstock.replication.partition import Partition
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


class SetupTimeout(NamedTuple):
    """How long a connection may take to open; longer after each failure (KIP-601)."""

    first_ms: int
    max_ms: int

    def after(self, failures: int) -> int:
        return max(min(self.first_ms << min(failures, 16), self.max_ms), 1)


DEFAULT_SETUP_TIMEOUT = SetupTimeout(10_000, 30_000)


class Fetchers:
    """Assigns each followed partition to a fetcher of its leader. Belongs to the event loop.

    `address_of` returns a broker's current address, or None if it is not registered. Connections
    start at `source`, so that each link between brokers has two addresses of its own.
    """

    def __init__(
        self,
        context: FetcherContext,
        address_of: Callable[[int], Address | None],
        source: str | None = None,
        setup_timeout: SetupTimeout = DEFAULT_SETUP_TIMEOUT,
        security: Callable[[], ClientSecurity] = no_security,
    ) -> None:
        self._security = security
        self._context, self._address_of, self._source = context, address_of, source
        self._setup_timeout = setup_timeout
        self._failures: Counter[int] = Counter()
        """Connections to a leader that failed since the last one that opened."""
        self._by_leader: dict[tuple[int, int], Fetcher] = {}
        self._by_partition: dict[TopicPartition, Fetcher] = {}
        self._changed = asyncio.Event()

    def follow(self, partition: Partition) -> None:
        """Start fetching the partition from its leader."""
        topic_partition = partition.topic_partition
        self._context.logs.drop_unverified(topic_partition)
        number = crc32(topic_partition.topic.encode()) + topic_partition.partition
        key = (partition.leader, number % self._context.config().num_replica_fetchers)
        fetcher = self._by_leader.get(key)
        if fetcher is None:
            leader = key[0]
            fetcher = Fetcher(leader, self._context, lambda: self._connect(leader))
            self._by_leader[key] = fetcher
        if self._by_partition.get(topic_partition) is not fetcher:
            self.stop(topic_partition)
            self._by_partition[topic_partition] = fetcher
        fetcher.add(partition)
        self._changed.set()

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop fetching a partition that this broker now leads or has dropped."""
        fetcher = self._by_partition.pop(topic_partition, None)
        if fetcher is not None:
            fetcher.remove(topic_partition)
            self._changed.set()

    async def run(self) -> None:
        """Run one task per fetcher that has partitions, until cancelled."""
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
                logger.exception(
                    "fetching from broker %d failed; restarting its fetcher", fetcher.leader
                )
            await asyncio.sleep(self._context.config().replica_fetch_backoff_ms / 1000)

    async def _connect(self, leader: int) -> Connection:
        address = self._address_of(leader)
        if address is None:
            raise ConnectionFailed(f"broker {leader} is not registered")
        try:
            security = self._security()
            connection = await connect(
                address,
                tls=security.tls,
                login=security.login,
                client_id=f"broker-{self._context.broker_id}-fetcher",
                source=self._source,
                timeout_ms=self._setup_timeout.after(self._failures[leader]),
            )
        except KafkaError:
            self._failures[leader] += 1
            raise
        del self._failures[leader]
        return connection
