"""Transactions of the delay service, and of the producers that write to its topics."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.client.cluster import Client
from penstock.client.errors import ConnectionFailed
from penstock.client.offsets import delete_records
from penstock.client.produce import ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.clock import SystemClock
from penstock.config.delay_route import route_of
from penstock.retry.positions import Reread, records_at, reread
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, TopicPartition
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, serving, serving_all, topics


@pytest.mark.parametrize("keeps_store", [True, False])
def test_instances_that_end_at_any_moment_neither_lose_nor_repeat_records(
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


@pytest.mark.parametrize("lost", ["request", "response"])
def test_a_failed_or_uncertain_commit_neither_loses_nor_repeats_records(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Delivered records are removed from the index after the commit, never before."""
    commit, failures = TransactionalProducer.commit, [True, False, True]

    async def failing(producer: TransactionalProducer) -> None:
        fails = failures.pop() if failures else False
        if fails and lost == "request":
            raise ConnectionFailed("lost")
        await commit(producer)
        if fails:
            raise ConnectionFailed("lost")

    monkeypatch.setattr(TransactionalProducer, "commit", failing)

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        routes = {name: route_of(name, {"penstock.delay.to": f"{name}-to"})}
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, *(delayed(name, b"%d" % n, 10 + 200 * n) for n in range(4)))
            found = await arrived(client, f"{name}-to", 4)
            is_last = False
            while not is_last:  # on a slow machine there are fewer transactions
                is_last = not failures
                await send(client, delayed(name, b"%d" % len(found), 10))
                found = await arrived(client, f"{name}-to", len(found) + 1)
        assert [each.record.value for each, _ in found] == [b"%d" % n for n in range(len(found))]

    run(bootstrap, scenario)


def test_an_aborted_record_at_the_end_blocks_nothing(
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


def test_an_open_transaction_blocks_only_schedules(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        every = [("penstock-schedule", b"every 1s")]
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            await send(client, ProducerRecord(name, b"tick", b"k", every))
            await arrived(client, f"{name}-to", 1)  # the service has started
            cancelled, _ = await send(
                client, delayed(name, b"cancelled", 2500), delayed(name, b"record", 3000)
            )
            order = [("penstock-cancel", b"%d" % cancelled)]
            await send(client, ProducerRecord(name, None, None, order))
            async with client.twin() as twin, TransactionalProducer(twin, name) as others:
                await others.begin()
                await others.send([ProducerRecord(name, b"open")])
                async with asyncio.timeout(10):
                    while (await arrived(client, f"{name}-to", 1))[-1][0].record.value == b"tick":
                        await asyncio.sleep(0.05)
                fired = await arrived(client, f"{name}-to", 1)
                await others.abort()
            found = await arrived(client, f"{name}-to", len(fired) + 1)
            values = [each.record.value for each, _ in found]
        assert b"cancelled" not in values
        assert values.count(b"record") == 1
        assert values[-1] == b"tick"

    run(bootstrap, scenario)


def test_scattered_records_are_read_batch_by_batch(bootstrap: str, name: str) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name)
        for _ in range(10):
            await send(client, *(ProducerRecord(name, b"%0100d" % n) for n in range(1000)))
        partition, wanted = TopicPartition(name, 0), list(range(0, 10_000, 97))
        found = await records_at(client, partition, wanted)
        assert sorted(found) == wanted
        assert all(each.value == b"%0100d" % (at % 1000) for at, each in found.items())
        topic = await client.topic(name)
        part = Reread(partition, topic.id, wanted, limit_bytes=1000)
        await reread(client, [part])
        assert (sorted(part.found), sorted(part.wanted)) == (wanted[:10], wanted[10:])
        await delete_records(client, {partition: Offset(5000)})
        left = await records_at(client, partition, wanted)
        assert sorted(left) == [each for each in wanted if each >= 5000]

    run(bootstrap, scenario)


def test_large_records_are_moved_in_order_and_in_several_transactions(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.due_records.TRANSACTION_BYTES", 250_000)
    monkeypatch.setattr("penstock.retry.due_records.LEAST_SHARE_BYTES", 250_000)

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        due = SystemClock().now_ms() + 100
        sending = [
            ProducerRecord(
                name,
                b"%0100000d" % n,
                b"k",
                [("penstock-deliver-at", b"%d" % (due + (20 - n) // 5))],
            )
            for n in range(20)
        ]
        for each in sending:
            await send(client, each)
        await asyncio.sleep(0.2)
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            found = await arrived(client, f"{name}-to", 20)
        values = [int((each.record.value or b"")[-2:]) for each, _ in found]
        assert values == sorted(range(20), key=lambda n: ((20 - n) // 5, n))

    run(bootstrap, scenario)


@pytest.mark.parametrize("slow", ["reads", "writes"])
def test_deliveries_that_take_too_long_are_split(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Because records are scattered in the log, or brokers are far away."""
    deliver: Any = TransactionalProducer.deliver

    async def slow_reread(client: Client, parts: Sequence[Reread]) -> None:
        await asyncio.sleep(0.005 * sum(len(each.wanted) for each in parts))
        await reread(client, parts)

    async def slow_deliver(producer: Any, records: Sequence[ProducerRecord], **rest: Any) -> Any:
        await asyncio.sleep(0.005 * len(records))
        return await deliver(producer, records, **rest)

    if slow == "reads":
        monkeypatch.setattr("penstock.retry.due_records.READ_S", 0.5)
        monkeypatch.setattr("penstock.retry.due_records.reread", slow_reread)
    else:
        monkeypatch.setattr("penstock.retry.route_mover.WRITE_S", 0.5)
        monkeypatch.setattr(TransactionalProducer, "deliver", slow_deliver)

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        at = [("penstock-deliver-at", b"%d" % SystemClock().now_ms())]
        await send(client, *(ProducerRecord(name, b"%d" % n, None, at) for n in range(150)))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            found = await arrived(client, f"{name}-to", 150)
        assert [each.record.value for each, _ in found] == [b"%d" % n for n in range(150)]

    run(bootstrap, scenario)
