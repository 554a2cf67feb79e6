"""A throttled reassignment runs at its configured rate, in simulated time."""

import pytest

from penstock.types import TopicPartition
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from simulation.clients import Producer
from simulation.steps import asked, made, moved
from simulation.world import Plan, World

BULK = TopicPartition("bulk", 0)
RATE = 10_000_000
RECORDS, RECORD_BYTES = 20, 900_000
BROKER = 4


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_keeps_its_rate(side: str) -> None:
    """A fetch transfers a tenth of a second's bytes, so a delay too long by as much shows."""
    took_s = 0.0

    async def story(world: World) -> None:
        nonlocal took_s
        link = world._link("bulk")
        producer = Producer("bulk", link, world.history, [BULK], 1, False, promised=False)

        async def fill() -> None:
            for count in range(RECORDS):
                while not await producer._tried(BULK, [bytes([count]) * RECORD_BYTES]):
                    pass
            change = AlterableConfig(
                name=f"{side}.replication.throttled.rate", config_operation=0, value=str(RATE)
            )
            resource = AlterConfigsResource(
                resource_type=BROKER, resource_name="", configs=[change]
            )
            await link.anyone(
                IncrementalAlterConfigsRequest(resources=[resource]),
                IncrementalAlterConfigsResponse,
            )

        await made(world, BULK.topic, {f"{side}.replication.throttled.replicas": "*"}, [0])
        await asked(world, fill())
        began_s = world.loop.time()
        await moved(world, BULK, [1])
        took_s = world.loop.time() - began_s

    World(Plan(1, 0)).run(story)
    assert took_s == pytest.approx(RECORDS * RECORD_BYTES / RATE, rel=0.3)
