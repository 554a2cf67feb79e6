"""A writer that was paused while another took over cannot write when it resumes."""

import asyncio

import pytest

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.errors import KafkaError
from penstock.registry.election import Identity
from penstock.registry.errors import RegistryError
from penstock.registry.records import TOPIC, RegistryRecord, SchemaKey, schema_value
from penstock.registry.schema import Schema
from penstock.registry.service import FENCED, RegistryService
from penstock.registry.topic import SchemaLog, create_schemas_topic
from penstock.testing.broker import EmbeddedBroker


def version(number: int, schema_id: int) -> RegistryRecord:
    schema = Schema(f'{{"type":"fixed","name":"f{schema_id}","size":1}}')
    return RegistryRecord(SchemaKey("s", number), schema_value("s", number, schema_id, schema))


def test_a_former_writer_is_fenced(broker: EmbeddedBroker) -> None:
    async def story() -> None:
        addresses = parse_addresses(broker.bootstrap)
        async with Client(addresses) as one, Client(addresses) as other:
            await create_schemas_topic(one, TOPIC)
            old, new = SchemaLog(one, TOPIC), SchemaLog(other, TOPIC)
            async with asyncio.TaskGroup() as tasks:
                following = [tasks.create_task(each.follow()) for each in (old, new)]
                await old.take_over()
                await old.append([version(1, 1)])
                await new.take_over()
                assert new.state.last_id == 1, "it has read what the old one wrote"
                end = await new.append([version(2, 2)])
                with pytest.raises(KafkaError) as refused:
                    await old.append([version(2, 7)])
                assert refused.value.code in FENCED
                assert not old.is_writer
                await old.caught_up(end)
                for each in (old, new):
                    assert [found.id for found in each.state.all_versions("s")] == [1, 2]
                for task in following:
                    task.cancel()

    asyncio.run(story())


def test_an_instance_that_is_deposed_during_a_decision_writes_nothing(
    broker: EmbeddedBroker,
) -> None:
    async def story() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            service = RegistryService(client, Identity("127.0.0.1", 1))
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(service.run())

                def decide(*_: object) -> tuple[list[RegistryRecord], None]:
                    service.log.give_up()  # as the election does
                    return [version(1, 1)], None

                with pytest.raises(RegistryError, match="does not lead any more; try again"):
                    await service.change(decide)
                assert service.state.all_versions("s") == []
                running.cancel()

    asyncio.run(story())
