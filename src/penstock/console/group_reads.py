"""What only brokers' own pages tell of a group: its rebalances, its records in flight."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from penstock.advice.broker_page import told
from penstock.client.groups import find_coordinator
from penstock.client.route import ToCoordinator
from penstock.client.share_groups import SHARE
from penstock.console import model
from penstock.console.watch import ClusterWatch, Look
from penstock.coordinator.group.rebalance_log import Rebalances

Params = Mapping[str, str]


class RecordsInFlight(Struct, frozen=True):
    """Neighbouring records that a share group has handed out, on their leader's page."""

    topic: str
    partition: int
    first: int
    last: int
    state: str
    deliveries: int
    member: str | None = None
    lock_ms: int | None = None
    """How long the member still has them."""
    invisible_ms: int | None = None
    """How long nobody gets them."""


async def rebalances(watch: ClusterWatch, look: Look, given: Params) -> Rebalances | None:
    """Without rebalances if the coordinator has no such page, as Apache Kafka's."""
    group = given["group"]
    if model.group(look, group) is None:
        return None
    coordinator = await find_coordinator(watch.client, ToCoordinator(group))
    query = {"group": group}
    found = await told(watch.client, coordinator, "/groups/rebalances", query, Rebalances)
    return found or Rebalances(group, (), None)


async def in_flight(watch: ClusterWatch, look: Look, given: Params) -> list[RecordsInFlight] | None:
    """Of all brokers that answer: each may lead partitions that the group reads."""
    group, kind = given["group"], list[RecordsInFlight]
    detail = model.group(look, group)
    if detail is None:
        return None
    if detail.group.type != SHARE:
        return []
    query, client = {"group": group}, watch.client
    async with asyncio.TaskGroup() as tasks:
        asking = [
            tasks.create_task(told(client, each, "/groups/in-flight", query, kind))
            for each in look.snapshot.cluster.brokers.values()
        ]
    found = [each for task in asking for each in task.result() or ()]
    return sorted(found, key=lambda each: (each.topic, each.partition, each.first))
