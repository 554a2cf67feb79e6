"""The delay service against our broker: due times, order, schedules, cancellations, crashes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.clock import SystemClock
from penstock.config.delay_route import route_of
from penstock.record.dead_letter import read_dead_letter
from penstock.retry.service import DelayService
from penstock.retry.store.sqlite import SqliteIndex
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition

_numbers = count()
WEEK_MS = 7 * 86_400_000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap


@pytest.fixture
def name() -> str:
    return f"t{next(_numbers)}"


def run(bootstrap: str, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Client(parse_addresses(bootstrap)) as client:
            await scenario(client)

    asyncio.run(main())


@asynccontextmanager
async def serving(
    client: Client, store: Path, topic: str, settings: Mapping[str, str]
) -> AsyncIterator[None]:
    """A service, cancelled wherever it is at the end; its errors end the block."""
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


async def topics(client: Client, *names: str, partitions: int = 1) -> None:
    for each in names:
        await create_topic(client, NewTopic(name=each, partitions=partitions))


async def send(client: Client, *records: ProducerRecord) -> list[int]:
    return [each.offset for each in await IdempotentProducer(client).send(records)]


async def arrived(client: Client, topic: str, number: int) -> list[tuple[ConsumedRecord, int]]:
    """The first records of a topic, committed, and when each was seen."""
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


def test_a_record_passes_one_that_is_due_in_a_week(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            sent_ms = SystemClock().now_ms()
            await send(client, delayed(name, b"late", WEEK_MS), delayed(name, b"soon", 500, b"k"))
            ((found, at_ms),) = await arrived(client, f"{name}-to", 1)
        assert (found.record.value, found.record.key, found.record.headers) == (b"soon", b"k", [])
        assert at_ms >= sent_ms + 500 - 1

    run(bootstrap, scenario)


def test_order_and_dead_letters(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}.dlq")
        due = b"%d" % (SystemClock().now_ms() + 300)
        at = [("penstock-deliver-at", due)]
        bad = ProducerRecord(
            name, b"bad", b"k", [("penstock-deliver-at", b"tomorrow"), ("x", b"y")]
        )
        same = [ProducerRecord(name, b"%d" % n, b"k", at) for n in range(50)]
        await send(client, bad, *same)
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((dead, _),) = await arrived(client, f"{name}.dlq", 1)
            found = await arrived(client, f"{name}-to", 50)
        assert [each.record.value for each, _ in found] == [b"%d" % n for n in range(50)]
        letter = read_dead_letter(dead.record.headers)
        assert letter is not None
        assert (letter.source, letter.topic, letter.offset) == ("delay", name, 0)
        assert "tomorrow" in letter.error
        assert ("x", b"y") in dead.record.headers

    run(bootstrap, scenario)


def test_retries_come_back_with_attempts_and_end_as_dead_letters(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    settings = {
        "penstock.retry.to": f"{name}-to",
        "penstock.retry.backoff": "50ms,100ms",
        "penstock.dlq.topic": f"{name}-dead",
    }

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}-dead")
        async with serving(client, tmp_path / "s", name, settings):
            headers: list[tuple[str, bytes | None]] = [("penstock-error", b"no stock")]
            for attempt in (1, 2):
                await send(client, ProducerRecord(name, b"v", b"k", headers))
                found, _ = (await arrived(client, f"{name}-to", attempt))[-1]
                headers = found.record.headers
                assert dict(headers)["penstock-attempt"] == b"%d" % attempt
            await send(client, ProducerRecord(name, b"v", b"k", headers))
            ((dead, _),) = await arrived(client, f"{name}-dead", 1)
        letter = read_dead_letter(dead.record.headers)
        assert letter is not None
        assert letter.error == "gave up after 2 attempts: no stock"
        assert (letter.attempt, letter.offset, letter.source) == (2, 0, "retry")

    run(bootstrap, scenario)


def test_a_schedule_fires_until_its_tombstone(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            every = [("penstock-schedule", b"every 1s")]
            await send(client, ProducerRecord(name, b"tick", b"k", every))
            found = await arrived(client, f"{name}-to", 2)
            assert [each.record.value for each, _ in found] == [b"tick", b"tick"]
            assert 900 <= found[1][1] - found[0][1] <= 1500
            await send(client, ProducerRecord(name, None, b"k"), delayed(name, b"end", 2500))
            assert (await arrived(client, f"{name}-to", 3))[-1][0].record.value == b"end"

    run(bootstrap, scenario)


def test_a_cancelled_record_does_not_arrive(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            offset, _ = await send(
                client, delayed(name, b"cancelled", 600), delayed(name, b"later", 900)
            )
            await send(
                client, ProducerRecord(name, None, None, [("penstock-cancel", b"%d" % offset)])
            )
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"later"

    run(bootstrap, scenario)


@pytest.mark.parametrize("keeps_store", [True, False])
def test_instances_that_end_at_any_moment_neither_lose_nor_repeat(
    bootstrap: str, name: str, tmp_path: Path, keeps_store: bool
) -> None:
    records = 2000

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        await send(client, delayed(name, b"week", WEEK_MS))
        sending = [delayed(name, b"%d" % n, 100 + 7919 * n % 3000) for n in range(records)]
        await send(client, *sending)
        settings = {"penstock.delay.to": f"{name}-to"}
        for life in range(8):
            store = tmp_path / ("s" if keeps_store else f"s{life}")
            async with serving(client, store, name, settings):
                await asyncio.sleep(0.25 + 0.05 * life)
        async with serving(client, tmp_path / "s", name, settings):
            found = await arrived(client, f"{name}-to", records)
        values = sorted(int(each.record.value or b"") for each, _ in found)
        assert values == list(range(records))
        end = await arrived(client, f"{name}-to", records)
        assert len(end) == records

    run(bootstrap, scenario)
