"""Delay topics that are created, deleted and changed."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.client.admin import NewTopic, create_partitions, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs, describe_configs
from penstock.client.listing import EARLIEST
from penstock.client.offsets import list_offsets
from penstock.client.produce import ProducerRecord
from penstock.clock import SystemClock
from penstock.config.delay_route import route_of
from penstock.config.resource_type import ConfigResourceType
from penstock.retry.routes import RouteRefusals, keep_records
from penstock.retry.service import DelayService
from penstock.retry.state_topic import (
    PARTITIONS,
    STATE_TOPIC,
    create_state_topic,
    load_progress,
    state_partition,
)
from penstock.retry.store.index import IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, TopicPartition
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, serving, serving_all, topics


def test_a_recreated_topic_starts_afresh(bootstrap: str, name: str, tmp_path: Path) -> None:
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


def test_a_deleted_topic_does_not_stop_the_service(
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
            await send(client, delayed(gone, b"never", 1000))
            await delete_topic(client, gone)
            await asyncio.sleep(1)
            await send(client, delayed(name, b"3", 10))
            await arrived(client, f"{name}-to", 3)

    run(bootstrap, scenario)


def test_delay_topics_are_not_compacted(bootstrap: str, name: str) -> None:
    async def scenario(client: Client) -> None:
        await create_topic(client, NewTopic(name=name, configs={"cleanup.policy": "compact"}))
        route = route_of(name, {"penstock.delay.to": "to"})
        assert route is not None
        await keep_records(client, route)
        resource = Resource(ConfigResourceType.TOPIC, name)
        found = await describe_configs(client, resource, names=["cleanup.policy", "retention.ms"])
        assert {each: found[each].value for each in found} == {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
        }

    run(bootstrap, scenario)


def test_retention_that_was_enabled_is_disabled_again(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.serve.KEEP_LOOKS", 1)

    async def scenario(client: Client) -> None:
        resource = Resource(ConfigResourceType.TOPIC, name)

        async def is_off() -> None:
            while True:
                found = await describe_configs(client, resource, names=["retention.ms"])
                if found["retention.ms"].value == "-1":
                    return
                await asyncio.sleep(0.1)

        await create_topic(client, NewTopic(name=name, configs={"penstock.delay.to": f"{name}-to"}))
        await is_off()
        await alter_configs(client, resource, {"retention.ms": "1000"})
        await is_off()
        await delete_topic(client, name)

    run(bootstrap, scenario)


def test_a_timestamp_may_lie_years_ahead(bootstrap: str, name: str) -> None:
    async def scenario(client: Client) -> None:
        appended = {"message.timestamp.type": "LogAppendTime"}
        await create_topic(client, NewTopic(name=name, configs=appended))
        route = route_of(name, {"penstock.delay.to": "to", "penstock.delay.by": "timestamp"})
        assert route is not None
        await keep_records(client, route)
        at_ms = SystemClock().now_ms() + 500 * WEEK_MS
        await send(client, ProducerRecord(name, b"v", timestamp=at_ms))
        ((found, _),) = await arrived(client, name, 1)
        assert found.record.timestamp == at_ms

    run(bootstrap, scenario)


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_route_may_change_while_its_partitions_are_opened(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}-new")
        old = route_of(name, {"penstock.delay.to": f"{name}-to"})
        new = route_of(name, {"penstock.delay.to": f"{name}-new"})
        assert old is not None
        assert new is not None
        index = SqliteIndex(tmp_path / "s")
        async with DelayService(client, index, {name: old}, instance=name) as service:

            async def during(client: Client, keys: Iterable[IndexKey]) -> object:
                service.route({} if is_removed else {name: new})
                return await load_progress(client, keys)

            monkeypatch.setattr("penstock.retry.service.load_progress", during)
            while not service.partitions:
                await service.step()
            assert service.partitions[TopicPartition(name, 0)].route == (old if is_removed else new)
        await index.close()

    run(bootstrap, scenario)


def test_a_former_leader_does_not_decide_how_much_is_read_before_the_first_delivery(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log may be longer than that of the leader that was elected without it."""
    looked_at = DelayService._looked_at
    asked: set[TopicPartition] = set()

    async def looking(service: DelayService, found: Any) -> Any:
        result = await looked_at(service, found)
        asked.update(found)
        return result

    async def listed(client: Client, wanted: Mapping[TopicPartition, int], **rest: Any) -> Any:
        found = await list_offsets(client, wanted, **rest)
        return {
            at: each if at in asked or wanted[at] == EARLIEST else replace(each, offset=Offset(10))
            for at, each in found.items()
        }

    monkeypatch.setattr(DelayService, "_looked_at", looking)
    monkeypatch.setattr("penstock.retry.service.list_offsets", listed)

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        await send(client, delayed(name, b"v", 10))
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            async with asyncio.timeout(15):
                await arrived(client, f"{name}-to", 1)

    run(bootstrap, scenario)


def test_added_partitions_are_served_soon(bootstrap: str, name: str, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            await send(client, delayed(name, b"first", 10))
            await arrived(client, f"{name}-to", 1)
            await create_partitions(client, name, 2)
            client.forget()
            headers = [("penstock-delay-ms", b"10")]
            await send(client, ProducerRecord(name, b"second", None, headers, partition=1))
            async with asyncio.timeout(15):
                await arrived(client, f"{name}-to", 2)

    run(bootstrap, scenario)


def test_a_foreign_record_in_the_state_topic_is_skipped_and_named(
    bootstrap: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to")
        await create_state_topic(client)
        foreign = [
            ProducerRecord(STATE_TOPIC, b"?", b"of somebody", partition=each)
            for each in range(PARTITIONS)
        ]
        offsets = await send(client, *foreign)
        key = IndexKey((await client.topic(name)).id, 0)
        async with serving(client, tmp_path / "s", name, {"penstock.delay.to": f"{name}-to"}):
            await send(client, delayed(name, b"v", 10))
            await arrived(client, f"{name}-to", 1)
        (named,) = [each.getMessage() for each in caplog.records if "skipped" in each.msg]
        assert f"at offset {offsets[state_partition(key)]}, key b'of somebody'" in named

    run(bootstrap, scenario)


def test_a_topic_with_wrong_settings_is_reported_once_per_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = RouteRefusals()
    for found in ({"a": "x"}, {"a": "x"}, {"a": "y", "b": "x"}, {}, {"a": "y"}):
        refusals.log(found)
    assert [each.getMessage() for each in caplog.records] == [
        f"topic {topic} is not served: {reason}"
        for topic, reason in (("a", "x"), ("a", "y"), ("b", "x"), ("a", "y"))
    ]
