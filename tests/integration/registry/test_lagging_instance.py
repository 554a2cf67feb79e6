"""An instance that lags says so, instead of answering that a schema does not exist."""

import asyncio

import pytest

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.registry import service
from penstock.registry.election import Identity
from penstock.registry.errors import RegistryError
from penstock.registry.records import TOPIC, RegistryRecord, SchemaKey, schema_value
from penstock.registry.schema import Schema
from penstock.registry.service import RegistryService
from penstock.registry.topic import SchemaLog, create_schemas_topic
from penstock.testing.broker import EmbeddedBroker

SCHEMA = Schema('{"type":"fixed","name":"f","size":1}')


def test_only_an_instance_that_has_read_everything_reports_an_unknown_schema(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            await create_schemas_topic(client, TOPIC)
            writer = SchemaLog(client, TOPIC)
            reader = RegistryService(client, Identity("localhost", 1))
            async with asyncio.TaskGroup() as tasks:
                following = [tasks.create_task(each.follow()) for each in (writer, reader.log)]
                await writer.take_over()
                assert await reader.schema(1) is None
                async with reader.log.changing:  # blocks its replay
                    await writer.append(
                        [RegistryRecord(SchemaKey("s", 1), schema_value("s", 1, 1, SCHEMA))]
                    )
                    monkeypatch.setattr(service, "READ_TO_END_S", 0.1)
                    with pytest.raises(RegistryError, match="lags behind") as refused:
                        await reader.schema(1)
                    assert refused.value.status == 503
                monkeypatch.setattr(service, "READ_TO_END_S", 30)
                assert await reader.schema(1) == SCHEMA
                for task in following:
                    task.cancel()

    asyncio.run(story())
