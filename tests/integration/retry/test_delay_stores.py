"""Stores that lost or kept too much: the log decides."""

import asyncio
import time
from pathlib import Path

import pytest

from penstock.client.cluster import Client
from penstock.config.delay_route import Route, route_of
from penstock.retry.health import DelayHealth
from penstock.retry.serve import serve_delays
from penstock.retry.service import DelayService, LogShortened
from penstock.retry.store.index import DueStoreUnavailable, Entry, IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, TopicPartition
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, serving, serving_all, topics
from support.retry.time_index import overwritten


def test_an_index_of_a_longer_log_is_rebuilt(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        key = IndexKey((await client.topic(name)).id, 0)
        index = SqliteIndex(tmp_path / "s")
        await index.reset(key, Offset(0))
        await index.put(key, [Entry(0, 0), Entry(0, 90)], since=Offset(0), to=Offset(100))
        await index.close()
        await send(client, delayed(name, b"v", 10))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            ((found, _),) = await arrived(client, f"{name}-to", 1)
        assert found.record.value == b"v"

    run(bootstrap, scenario)


def test_a_store_that_was_emptied_meanwhile_is_rebuilt(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        routes = {name: route_of(name, {"penstock.delay.to": f"{name}-to"})}
        index = SqliteIndex(tmp_path / "s")
        async with serving_all(client, index, routes):
            await send(client, delayed(name, b"first", 10), delayed(name, b"second", 2500))
            await arrived(client, f"{name}-to", 1)
            key = IndexKey((await client.topic(name)).id, 0)
            await index.reset(key, Offset(0))
            found = await arrived(client, f"{name}-to", 2)
        assert [each.record.value for each, _ in found] == [b"first", b"second"]

    run(bootstrap, scenario)


def test_a_store_that_lost_removals_repeats_nothing(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        index = SqliteIndex(tmp_path / "s")
        routes = {name: route_of(name, {"penstock.delay.to": f"{name}-to"})}
        async with serving_all(client, index, routes):
            await send(client, delayed(name, b"1", 10))
            await arrived(client, f"{name}-to", 1)
            key = IndexKey((await client.topic(name)).id, 0)
            to = await index.indexed_to(key)
            assert to is not None
            await index.put(key, [Entry(0, 0)], since=to, to=to)
            await send(client, delayed(name, b"2", 300), delayed(name, b"3", 600))
            found = await arrived(client, f"{name}-to", 3)
        assert [each.record.value for each, _ in found] == [b"1", b"2", b"3"]

    run(bootstrap, scenario)


def test_a_store_that_breaks_in_use_is_rebuilt(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        routes = {name: route_of(name, {"penstock.delay.to": f"{name}-to"})}
        index = SqliteIndex(tmp_path / "s")
        async with serving_all(client, index, routes):
            waiting = [delayed(name, b"%d" % n, 2500) for n in range(1000)]
            await send(client, delayed(name, b"first", 10), *waiting)
            await arrived(client, f"{name}-to", 1)
            overwritten(index, tmp_path / "s")
            found = await arrived(client, f"{name}-to", 1001)
        values = [each.record.value for each, _ in found]
        assert values == [b"first", *(b"%d" % n for n in range(1000))]
        assert (tmp_path / "s.broken").exists()

    run(bootstrap, scenario)


def test_a_log_that_loses_its_end_during_service_is_read_from_its_start(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    """The reader is then out of range, and restarts at the log's start."""

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        route = route_of(name, {"penstock.delay.to": f"{name}-to"})
        assert route is not None
        index = SqliteIndex(tmp_path / "s")
        async with DelayService(client, index, {name: route}, instance=name) as service:
            await send(client, delayed(name, b"1", 10), delayed(name, b"2", WEEK_MS))
            async with asyncio.TaskGroup() as tasks:
                arriving = tasks.create_task(arrived(client, f"{name}-to", 1))
                while not arriving.done():
                    await service.step()
            service._consumer.seek(TopicPartition(name, 0), Offset(0))
            with pytest.raises(LogShortened):
                await service.step()
            indexed_to = await index.indexed_to(IndexKey((await client.topic(name)).id, 0))
            assert indexed_to == 0, "the log may grow as long again before it is opened"
        await index.close()

    run(bootstrap, scenario)


class Away(SqliteIndex):
    """A store that can be unavailable."""

    is_away = False

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        if self.is_away:
            raise DueStoreUnavailable("away")
        return await super().indexed_to(key)


def test_the_service_is_not_ready_while_its_store_is_unavailable(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although everything else works, such as joining the group, while the service restarts."""
    monkeypatch.setattr("penstock.retry.serve.RETRY_S", (0.05,))

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        route = route_of(name, {"penstock.delay.to": f"{name}-to"})
        assert route is not None
        index, health = Away(tmp_path / "s"), DelayHealth()

        async def find(_: Client) -> dict[str, Route]:
            return {name: route}

        def is_up() -> bool:
            return health.store_is_up

        async def ready() -> None:
            await send(client, delayed(name, b"first", 10))

        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(serve_delays(client, index, name, ready, find, health))
            await arrived(client, f"{name}-to", 1)
            assert is_up()
            index.is_away = True
            while is_up():
                await asyncio.sleep(0.01)
            end_s = time.monotonic() + 3
            while time.monotonic() < end_s:
                await asyncio.sleep(0.005)
                assert not is_up()
                assert health.is_working(), "the brokers answer"
            index.is_away = False
            await arrived(client, f"{name}-to", 2)
            assert is_up()
            serving.cancel()
        await index.close()

    run(bootstrap, scenario)
