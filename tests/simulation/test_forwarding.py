"""Requests for the controller are forwarded to it, once."""

from contextlib import suppress

from penstock.broker.peers.connection import BROKER_SOFTWARE
from penstock.client.address import Address
from penstock.client.connection import connect
from penstock.client.errors import ConnectionFailed
from penstock.wire.messages.create_topics import CreateTopicsResponse
from simulation.broker import PORT
from simulation.steps import asked, controller_of
from simulation.world import Plan, World


async def create(world: World, name: str, software: str) -> None:
    """Ask a broker other than the controller to create a topic."""
    other = next(each for each in range(len(world.brokers)) if each != controller_of(world))

    async def ask() -> None:
        address = Address(f"broker-{other}", PORT)
        connection = await connect(address, client_id="test", software=software)
        # A response to CreateTopics has no error code: NOT_CONTROLLER closes the connection.
        with suppress(ConnectionFailed):
            await connection.call(world.creation(name), CreateTopicsResponse, timeout_ms=20_000)
        connection.abort()

    await asked(world, ask())


def test_a_client_may_ask_any_broker() -> None:
    async def story(world: World) -> None:
        await create(world, "by-client", "penstock")
        assert "by-client" in world.topics()

    World(Plan(seed=1, steps=0)).run(story)


def test_a_forwarded_request_is_not_forwarded_again() -> None:
    async def story(world: World) -> None:
        await create(world, "by-broker", BROKER_SOFTWARE)
        assert "by-broker" not in world.topics()

    World(Plan(seed=1, steps=0)).run(story)
