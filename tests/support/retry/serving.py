"""Runs the delay service in the test's own process, and reads what arrives."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.clock import SystemClock
from penstock.config.delay_route import Route, route_of
from penstock.errors import KafkaError
from penstock.retry.service import DelayService
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import TopicPartition

WEEK_MS = 7 * 86_400_000


def run(bootstrap: str, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Client(parse_addresses(bootstrap)) as client:
            await scenario(client)

    asyncio.run(main())


@asynccontextmanager
async def serving(
    client: Client, store: Path, topic: str, settings: Mapping[str, str]
) -> AsyncIterator[None]:
    """Runs a service, which is cancelled at the end wherever it is; its errors end the block."""
    route = route_of(topic, settings)
    assert route is not None
    index = SqliteIndex(store)

    async def steps() -> None:
        async with DelayService(client, index, {topic: route}, instance=topic) as service:
            while True:
                await service.step()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(steps())
        yield
        task.cancel()
    await index.close()


@asynccontextmanager
async def serving_all(
    client: Client, index: SqliteIndex, routes: Mapping[str, Route | None]
) -> AsyncIterator[None]:
    """Like `serving`, but starts a new service after a Kafka error, as `penstock delay
    serve` does.
    """
    known = {name: route for name, route in routes.items() if route is not None}
    instance = next(iter(known))

    async def steps() -> None:
        while True:
            try:
                async with DelayService(client, index, known, instance=instance) as service:
                    while True:
                        await service.step()
            except KafkaError:
                client.forget()
                await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(steps())
        yield
        task.cancel()
    await index.close()


async def topics(client: Client, *names: str, partitions: int = 1) -> None:
    for each in names:
        await create_topic(client, NewTopic(name=each, partitions=partitions))


async def send(client: Client, *records: ProducerRecord) -> list[int]:
    return [each.offset for each in await IdempotentProducer(client).send(records)]


async def arrived(client: Client, topic: str, number: int) -> list[tuple[ConsumedRecord, int]]:
    """The first `number` committed records of a topic, and when each was seen."""
    partition = TopicPartition(topic, 0)
    await client.retrying(lambda: client.topic(topic, create=True))
    start = (await list_offsets(client, {partition: EARLIEST}))[partition].offset
    seen: list[tuple[ConsumedRecord, int]] = []
    async with SimpleConsumer(
        client, {partition: start}, isolation=IsolationLevel.READ_COMMITTED, max_wait_ms=20
    ) as consumer:
        while len(seen) < number:
            found = await consumer.poll()
            seen += [(each, SystemClock().now_ms()) for each in found]
    return seen


def delayed(topic: str, value: bytes, ms: int, key: bytes | None = None) -> ProducerRecord:
    return ProducerRecord(topic, value, key, [("penstock-delay-ms", b"%d" % ms)])
