"""Reads that only the brokers' HTTP pages offer: rebalances and in-flight records of a group."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from penstock.advice.broker_page import page_of
from penstock.client.groups import find_coordinator
from penstock.client.route import ToCoordinator
from penstock.client.share_groups import SHARE
from penstock.console import model
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.coordinator.group.rebalance_log import Rebalances

Params = Mapping[str, str]


class RecordsInFlight(Struct, frozen=True):
    """Consecutive records that a share group has in flight, as the leader's page reports them."""

    topic: str
    partition: int
    first: int
    last: int
    state: str
    deliveries: int
    member: str | None = None
    lock_ms: int | None = None
    """How much longer the member's acquisition lock lasts."""
    invisible_ms: int | None = None
    """How long until the records can be acquired again."""


async def rebalances(watch: ClusterWatch, look: ClusterLook, given: Params) -> Rebalances | None:
    """The rebalances of a group; none if its coordinator has no such page, as in Apache Kafka."""
    group = given["group"]
    if model.group(look, group) is None:
        return None
    coordinator = await find_coordinator(watch.client, ToCoordinator(group))
    query = {"group": group}
    found = await page_of(watch.client, coordinator, "/groups/rebalances", query, Rebalances)
    return found or Rebalances(group, (), None)


async def in_flight(
    watch: ClusterWatch, look: ClusterLook, given: Params
) -> list[RecordsInFlight] | None:
    """The in-flight records of a share group, from all brokers that answer: any may lead a
    partition of it.
    """
    group, kind = given["group"], list[RecordsInFlight]
    detail = model.group(look, group)
    if detail is None:
        return None
    if detail.group.type != SHARE:
        return []
    query, client = {"group": group}, watch.client
    async with asyncio.TaskGroup() as tasks:
        asking = [
            tasks.create_task(page_of(client, each, "/groups/in-flight", query, kind))
            for each in look.snapshot.cluster.brokers.values()
        ]
    found = [each for task in asking for each in task.result() or ()]
    return sorted(found, key=lambda each: (each.topic, each.partition, each.first))
