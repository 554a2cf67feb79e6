"""Topics of services: one replica on the workers of a machine, more on the brokers of a cluster."""

import asyncio
from pathlib import Path

import pytest

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.client.configs import ConfigEntry
from penstock.client.errors import BrokerRefused
from penstock.client.state_replicas import FACTOR, state_replicas
from penstock.errors import ErrorCode
from penstock.local.workers.temporary import temporary_workers
from penstock.registry.topic import create_schemas_topic
from penstock.retry.state_topic import STATE_TOPIC, create_state_topic


def test_the_number_of_workers_can_shrink_with_services(tmp_path: Path) -> None:
    async def made(bootstrap: str) -> set[int]:
        async with Client(parse_addresses(bootstrap)) as client:
            await create_schemas_topic(client, "_schemas")
            await create_state_topic(client)
            topics = await client.topics(["_schemas", STATE_TOPIC])
            return {len(each.replicas) for topic in topics for each in topic.partitions.values()}

    with temporary_workers(tmp_path, 2, {}) as state:
        assert asyncio.run(made(state.bootstrap)) == {1}
    with temporary_workers(tmp_path, 1, {}):
        pass


def test_service_topics_have_as_many_replicas_as_the_offsets_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> dict[str, ConfigEntry]:
        raise BrokerRefused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "broker 1")

    async def counts(bootstrap: str) -> list[int]:
        async with Client(parse_addresses(bootstrap)) as client:
            found = [await state_replicas(client)]
            monkeypatch.setattr("penstock.client.state_replicas.describe_configs", refused)
            return [*found, await state_replicas(client)]

    with temporary_workers(tmp_path, 2, {FACTOR: "2"}) as state:
        assert asyncio.run(counts(state.bootstrap)) == [2, 2]
