"""Scenarios with our client, each in an event loop of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from peers.kafka import KafkaCluster
from penstock.client.address import parse_addresses
from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused

T = TypeVar("T")


def run(
    kafka: KafkaCluster, scenario: Callable[[Client], Awaitable[T]], timeout_ms: int = 20_000
) -> T:
    """Runs a scenario with a client of its own; no task may be left in the loop afterwards."""

    async def main() -> T:
        async with Client(parse_addresses(kafka.bootstrap), timeout_ms=timeout_ms) as client:
            result = await scenario(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(main())


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits for the condition: brokers learn of topics some time after the controller has
    answered.
    """
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.02)


async def partitions(client: Client, name: str) -> int:
    topics = {each.name: each for each in await list_topics(client)}
    return len(topics[name].partitions) if name in topics else 0


async def has_partitions(client: Client, name: str, count: int) -> None:
    async def reached() -> bool:
        return await partitions(client, name) == count

    await eventually(reached)


def refusal(kafka: KafkaCluster, scenario: Callable[[Client], Awaitable[object]]) -> BrokerRefused:
    with pytest.raises(BrokerRefused) as caught:
        run(kafka, scenario)
    return caught.value
