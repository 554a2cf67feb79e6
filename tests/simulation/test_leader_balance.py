"""Leadership returns automatically to a broker that was away, in the configured interval."""

import pytest

from simulation.steps import leader_of, until
from simulation.world import SETTINGS, Plan, World


@pytest.mark.row("A181")
def test_a_returning_broker_leads_its_preferred_partitions_again() -> None:
    interval_s = int(SETTINGS["leader.imbalance.check.interval.seconds"])

    async def story(world: World) -> None:
        topic_partition = world.partitions[0]
        preferred = world.assignment(topic_partition)[0][0]
        await until(lambda: leader_of(world, topic_partition) == preferred, 2 * interval_s)
        broker = world.brokers[preferred]
        broker.kill()
        await until(lambda: leader_of(world, topic_partition) not in {-1, preferred}, 10)
        broker.start(world.tasks)
        # It must be in sync again first; then one interval passes.
        await until(lambda: leader_of(world, topic_partition) == preferred, 4 * interval_s)

    World(Plan(seed=1, steps=0)).run(story)
