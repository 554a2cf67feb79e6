"""Targets that are missing or refuse records: only their own route waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.client.acls import AclBinding, AclBindingFilter, create_acl, delete_acls
from penstock.client.admin import NewTopic, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.metadata import NO_LEADER, TopicMetadata, topic_of
from penstock.client.produce import ProducerRecord
from penstock.client.record_sender import RecordSender
from penstock.clock import SystemClock
from penstock.config.delay_route import route_of
from penstock.errors import ErrorCode
from penstock.retry.service import DelayService
from penstock.retry.store.sqlite import SqliteIndex
from penstock.security.acl import AclOperation, PatternType, Permission, ResourceType
from penstock.testing.broker import EmbeddedBroker
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.metadata import MetadataResponseTopic
from support.retry.serving import WEEK_MS, arrived, delayed, run, send, serving, serving_all, topics


def test_an_unwritable_target_does_not_block_others(
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


def test_a_schedule_that_cannot_continue_fires_once(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next record has more headers, so neither its topic nor the dead letter topic
    accepts it.
    """
    monkeypatch.setattr("penstock.retry.route_mover.POSTPONED_MS", 300)

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


def test_records_that_no_topic_accepts_do_not_block_others(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.due_records.BATCH", 2)

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


def test_records_wait_for_a_missing_target_without_blocking_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.route_mover.POSTPONED_MS", 300)
    monkeypatch.setattr("penstock.retry.topics.REFUSED_MS", 100)

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


class JumpingClock:
    """A wall clock that can be set."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return SystemClock().monotonic_ms()


def test_a_clock_that_jumped_ahead_and_back_delays_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.topics.REFUSED_MS", 100)

    async def scenario(client: Client) -> None:
        await topics(client, name)
        route = route_of(name, {"penstock.delay.to": f"{name}-to"})
        assert route is not None
        clock, index = JumpingClock(), SqliteIndex(tmp_path / "s")
        await send(client, delayed(name, b"v", 10))
        async with DelayService(
            client, index, {name: route}, instance=name, clock=clock
        ) as service:
            clock.ahead_ms = WEEK_MS
            while not service.topics.refused:
                await service.step()
            clock.ahead_ms = 0
            await topics(client, f"{name}-to")
            async with asyncio.timeout(10):
                while not await service.step():
                    pass
        await index.close()

    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with EmbeddedBroker(settings=settings) as broker:
        run(broker.bootstrap, scenario)


def test_a_target_is_no_longer_waited_for_once_it_is_not_written(name: str, tmp_path: Path) -> None:
    """That is, once the route has another target, or the partitions have moved."""

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-to", f"{name}.dlq")
        good = route_of(name, {"penstock.delay.to": f"{name}-to"})
        assert good is not None
        wrong = replace(good, to="missing")
        index = SqliteIndex(tmp_path / "s")
        await send(client, delayed(name, b"v", 10))
        async with DelayService(client, index, {name: wrong}, instance=name) as service:
            while service.waiting_for != {"missing"}:
                await service.step()
            service.route({name: good})
            while not await service.step():
                pass
            assert not service.waiting_for
            service._movers[name].failures = 1
            assert service.waiting_for == {f"{name}-to"}
            await service.on_lost(list(service.partitions))
            assert not service.waiting_for
        await index.close()

    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with EmbeddedBroker(settings=settings) as broker:
        run(broker.bootstrap, scenario)


def test_a_target_that_was_just_deleted_does_not_block_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.topics.REFUSED_MS", 100)

    async def scenario(client: Client) -> None:
        other, gone = f"{name}-2", f"{name}-gone"
        await topics(client, name, other, gone, f"{name}-to")
        routes = {
            name: route_of(name, {"penstock.delay.to": f"{name}-to"}),
            other: route_of(other, {"penstock.delay.to": gone}),
        }
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, delayed(other, b"first", 10))
            await arrived(client, gone, 1)
            await send(client, delayed(other, b"waits", 300), delayed(name, b"good", 300))
            await delete_topic(client, gone)
            async with asyncio.timeout(10):
                await arrived(client, f"{name}-to", 1)
            await topics(client, gone)
            ((found, _),) = await arrived(client, gone, 1)
        assert found.record.value == b"waits"

    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with EmbeddedBroker(settings=settings) as broker:
        run(broker.bootstrap, scenario)


def test_a_forbidden_target_blocks_only_its_own_route(name: str, tmp_path: Path) -> None:
    acl = AclBinding(
        ResourceType.TOPIC,
        f"{name}-denied",
        PatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.WRITE,
        Permission.DENY,
    )

    async def scenario(client: Client) -> None:
        await topics(client, name, f"{name}-2", f"{name}-to", f"{name}-denied")
        await create_acl(client, acl)
        routes = {
            name: route_of(name, {"penstock.delay.to": f"{name}-to"}),
            f"{name}-2": route_of(f"{name}-2", {"penstock.delay.to": f"{name}-denied"}),
        }
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            await send(client, delayed(f"{name}-2", b"waits", 10), delayed(name, b"good", 300))
            await arrived(client, f"{name}-to", 1)
            await delete_acls(client, AclBindingFilter(name=f"{name}-denied"))
            ((found, _),) = await arrived(client, f"{name}-denied", 1)
        assert found.record.value == b"waits"
        assert await client.existing_topics([f"{name}-2.dlq"]) == []

    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedBroker(settings=settings) as broker:
        run(broker.bootstrap, scenario)


async def hang(*_: object) -> None:
    await asyncio.Event().wait()


async def refuse(*_: object) -> None:
    raise BrokerRefused(ErrorCode.NOT_ENOUGH_REPLICAS, "records")


@pytest.mark.parametrize("how", ["hangs", "refuses", "has no leader"])
def test_a_target_that_fails_for_a_while_blocks_only_its_own_route(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its records arrive afterwards, once and in order."""
    monkeypatch.setattr("penstock.retry.route_mover.WRITE_S", 0.3)
    monkeypatch.setattr("penstock.retry.route_mover.HELD_MS", (50, 300))
    bad, fails = f"{name}-bad", True
    produced = RecordSender._produced

    def described(response: MetadataResponseTopic) -> TopicMetadata:
        found = topic_of(response)
        if not fails or how != "has no leader" or found.name != bad:
            return found
        led = found.partitions.items()
        return replace(found, partitions={n: replace(each, leader=NO_LEADER) for n, each in led})

    async def written(
        self: RecordSender, leader: BrokerId, partitions: Sequence[TopicPartition], *more: Any
    ) -> Any:
        if fails and how != "has no leader" and any(each.topic == bad for each in partitions):
            await (hang if how == "hangs" else refuse)()
        return await produced(self, leader, partitions, *more)

    async def scenario(client: Client) -> None:
        nonlocal fails
        await topics(client, name, f"{name}-2", f"{name}-to", bad)
        routes = {
            name: route_of(name, {"penstock.delay.to": f"{name}-to"}),
            f"{name}-2": route_of(f"{name}-2", {"penstock.delay.to": bad}),
        }
        monkeypatch.setattr("penstock.client.cluster.topic_of", described)
        monkeypatch.setattr(RecordSender, "_produced", written)
        async with serving_all(client, SqliteIndex(tmp_path / "s"), routes):
            for n in range(4):
                await send(client, delayed(f"{name}-2", b"%d" % n, 10 + n), delayed(name, b"-", 10))
                async with asyncio.timeout(12):
                    await arrived(client, f"{name}-to", n + 1)
            fails = False
            client.forget()
            found = await arrived(client, bad, 4)
            await send(client, delayed(f"{name}-2", b"4", 10))
            found = await arrived(client, bad, 5)
        assert [each.record.value for each, _ in found] == [b"%d" % n for n in range(5)]

    run(bootstrap, scenario)
