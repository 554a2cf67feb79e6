"""The delay service against our broker: due times, order, schedules, cancellations, crashes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.clock import SystemClock
from penstock.config.delay_route import Route, route_of
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import KafkaError
from penstock.record.dead_letter import read_dead_letter
from penstock.retry.routes import keep_records
from penstock.retry.service import DelayService
from penstock.retry.store.index import Entry, IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Offset, TopicPartition

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


@asynccontextmanager
async def serving_all(
    client: Client, index: SqliteIndex, routes: Mapping[str, Route | None]
) -> AsyncIterator[None]:
    """Like `serving`, with a new service after an error of Kafka, as `penstock delay serve`."""
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


def test_a_topic_that_is_made_anew_begins_anew(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        routes = {name: route_of(name, {"penstock.delay.to": f"{name}-to"})}
        index = SqliteIndex(tmp_path / "s")
        async with serving_all(client, index, routes):
            await send(client, *(delayed(name, b"old%d" % n, 10) for n in range(3)))
            await arrived(client, f"{name}-to", 3)
            await delete_topic(client, name)
            await topics(client, name)
            client.forget()
            await send(client, *(delayed(name, b"new%d" % n, 10) for n in range(3)))
            found = await arrived(client, f"{name}-to", 6)
        values = [each.record.value for each, _ in found]
        assert values[3:] == [b"new0", b"new1", b"new2"]

    run(bootstrap, scenario)


def test_a_topic_that_is_deleted_does_not_end_the_service(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        gone = f"{name}-gone"
        await topics(client, name, gone, f"{name}-to")
        settings = {"penstock.delay.to": f"{name}-to"}
        routes = {each: route_of(each, settings) for each in (name, gone)}
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, delayed(name, b"1", 10), delayed(gone, b"2", 10))
            await arrived(client, f"{name}-to", 2)
            await delete_topic(client, gone)
            await asyncio.sleep(1)
            await send(client, delayed(name, b"3", 10))
            await arrived(client, f"{name}-to", 3)

    run(bootstrap, scenario)


def test_a_target_that_cannot_be_written_holds_up_no_other(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-bad", f"{name}-to")
        good = route_of(name, {"penstock.delay.to": f"{name}-to"})
        assert good is not None
        bad = replace(good, topic=f"{name}-bad", to="no such/topic", dead_letters=f"{name}-bad.dlq")
        routes = {name: good, bad.topic: bad}
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, delayed(f"{name}-bad", b"bad", 10), delayed(name, b"good", 300))
            ((dead, _),) = await arrived(client, f"{name}-bad.dlq", 1)
            await arrived(client, f"{name}-to", 1)
        assert dead.record.value == b"bad"

    run(bootstrap, scenario)


def test_a_cancellation_far_behind_a_record_that_is_due(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        (offset,) = await send(client, delayed(name, b"cancelled", 10))
        for _ in range(3):  # more than a fetch returns
            await send(client, delayed(name, bytes(900_000), WEEK_MS))
        cancel = ProducerRecord(name, None, None, [("penstock-cancel", b"%d" % offset)])
        await send(client, cancel, delayed(name, b"end", 10))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = (await arrived(client, f"{name}-to", 1))[:1]
        assert found.record.value == b"end"

    run(bootstrap, scenario)


def test_a_schedule_that_cannot_go_on_fires_once(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next record has more headers: neither its topic nor the dead letters take it."""
    monkeypatch.setattr("penstock.retry.service.POSTPONED_MS", 300)

    async def scenario(client: Client) -> None:
        small = {"max.message.bytes": "400"}
        await create_topic(client, NewTopic(name=name, configs=small))
        await create_topic(client, NewTopic(name=f"{name}.dlq", configs=small))
        await topics(client, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            every = [("penstock-schedule", b"every 1s")]
            await send(client, ProducerRecord(name, bytes(250), b"k", every))
            await send(client, delayed(name, b"end", 2500))
            found = await arrived(client, f"{name}-to", 2)
        assert [each.record.value for each, _ in found] == [bytes(250), b"end"]

    run(bootstrap, scenario)


def test_records_that_nobody_takes_hold_up_no_other(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.service.BATCH", 2)

    async def scenario(client: Client) -> None:
        small = {"max.message.bytes": "400"}
        for each in (f"{name}-to", f"{name}.dlq"):
            await create_topic(client, NewTopic(name=each, configs=small))
        await topics(client, name)
        large = [delayed(name, bytes(500), 10) for _ in range(4)]
        await send(client, *large, delayed(name, b"small", 20))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"small"

    run(bootstrap, scenario)


def test_an_aborted_record_at_the_end_holds_up_nothing(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        await send(client, delayed(name, b"v", 10))
        async with TransactionalProducer(client, name) as producer:
            await producer.begin()
            await producer.send([delayed(name, b"aborted", 10)])
            await producer.abort()
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"v"

    run(bootstrap, scenario)


def test_an_index_of_a_longer_log_is_built_again(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        key = IndexKey((await client.topic(name)).id, 0)
        index = SqliteIndex(tmp_path / "s")
        await index.put(key, [Entry(0, 0), Entry(0, 90)], Offset(100))
        await index.close()
        await send(client, delayed(name, b"v", 10))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"v"

    run(bootstrap, scenario)


def test_delay_topics_are_not_compacted(bootstrap: str, name: str) -> None:
    async def scenario(client: Client) -> None:
        await create_topic(client, NewTopic(name=name, configs={"cleanup.policy": "compact"}))
        await keep_records(client, name)
        resource = Resource(ConfigResourceType.TOPIC, name)
        found = await describe_configs(client, resource, names=["cleanup.policy", "retention.ms"])
        assert {each: found[each].value for each in found} == {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
        }

    run(bootstrap, scenario)


def test_records_wait_for_a_missing_target_and_hold_up_no_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.service.POSTPONED_MS", 300)
    monkeypatch.setattr("penstock.retry.service.REFUSED_MS", 100)

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-2", f"{name}-to", f"{name}-2.dlq")
        routes = {
            name: route_of(name, {"penstock.delay.to": f"{name}-to"}),
            f"{name}-2": route_of(f"{name}-2", {"penstock.delay.to": "missing"}),
        }
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, delayed(f"{name}-2", b"waits", 10), delayed(name, b"good", 300))
            await arrived(client, f"{name}-to", 1)
            await topics(client, "missing")
            ((found, _),) = await arrived(client, "missing", 1)
        assert found.record.value == b"waits"

    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with EmbeddedBroker(settings=settings) as broker:
        run(broker.bootstrap, scenario)
