"""Which ZooKeeper nodes brokers watch: topics and partitions are the controller's alone."""

import pytest

from penstock.metadata import paths
from penstock.metadata.store import ChildrenChanged, DataChanged
from penstock.types import BrokerId
from simulation.steps import controller_of
from simulation.world import Plan, World


def watched(world: World, broker: int) -> set[object]:
    store = world.brokers[broker].store
    assert store is not None
    return set(store._watches.watched())


@pytest.mark.row("A091")
def test_only_the_controller_watches_brokers_and_topics() -> None:
    async def story(world: World) -> None:
        controller = controller_of(world)
        cluster = {ChildrenChanged(paths.BROKER_IDS), ChildrenChanged(paths.TOPICS)}
        assert cluster <= watched(world, controller)
        for broker in {*range(world.plan.brokers)} - {controller}:
            assert watched(world, broker) == {
                DataChanged(paths.CONTROLLER),
                DataChanged(paths.FEATURE),
                DataChanged(paths.broker(BrokerId(broker))),
                ChildrenChanged(paths.CONFIG_CHANGES),
            }

    World(Plan(seed=1, steps=0)).run(story)
