"""The replicas of a topic as their own brokers report them, for the picture of a partition."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from penstock.advice.broker_page import page_of
from penstock.client.cluster import Client
from penstock.client.metadata import BrokerNode
from penstock.console.model import Partition

TIMEOUT_MS = 3000


class ReplicaPage(Struct, frozen=True):
    """A replica, from its broker's page `/replicas`."""

    broker: int
    partition: int
    leader_epoch: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class Bar(Struct, frozen=True):
    """A replica in the picture; positions are percentages. `replica` is null if its broker
    did not answer.
    """

    broker: int
    role: str
    in_sync: bool
    replica: ReplicaPage | None = None
    start: float = 0
    high_watermark: float = 0
    end: float = 0


async def replica_pages(
    client: Client, brokers: Sequence[BrokerNode], topic: str
) -> list[ReplicaPage]:
    query, kind = {"topic": topic}, list[ReplicaPage]
    async with asyncio.TaskGroup() as tasks:
        asking = [
            tasks.create_task(page_of(client, each, "/replicas", query, kind, TIMEOUT_MS))
            for each in brokers
        ]
    return [each for task in asking for each in task.result() or ()]


def picture(partition: Partition, pages: Sequence[ReplicaPage]) -> list[Bar]:
    """One bar per replica, all on the same scale."""
    known = {each.broker: each for each in pages if each.partition == partition.partition}
    low = min((each.log_start_offset for each in known.values()), default=0)
    high = max((each.log_end_offset for each in known.values()), default=0)

    def scaled(offset: int) -> float:
        return 100.0 * (offset - low) / (high - low) if high > low else 0.0

    def bar(broker: int) -> Bar:
        role = "leader" if broker == partition.leader else "follower"
        in_sync, replica = broker in partition.isr, known.get(broker)
        if replica is None:
            return Bar(broker, role, in_sync)
        return Bar(
            broker,
            role,
            in_sync,
            replica,
            scaled(replica.log_start_offset),
            scaled(replica.high_watermark),
            scaled(replica.log_end_offset),
        )

    return [bar(each) for each in partition.replicas]
