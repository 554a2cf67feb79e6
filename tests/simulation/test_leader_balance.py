"""Leadership goes back by itself to a broker that was away, in the interval that is set."""

import pytest

from simulation.stories import leader_of, until
from simulation.world import SETTINGS, Plan, World


@pytest.mark.row("A181")
def test_a_broker_that_comes_back_leads_again_what_is_preferred_for_it() -> None:
    interval_s = int(SETTINGS["leader.imbalance.check.interval.seconds"])

    async def story(world: World) -> None:
        topic_partition = world.partitions[0]
        preferred = world.assignment(topic_partition)[0][0]
        await until(lambda: leader_of(world, topic_partition) == preferred, 2 * interval_s)
        broker = world.brokers[preferred]
        broker.kill()
        await until(lambda: leader_of(world, topic_partition) not in {-1, preferred}, 10)
        broker.start(world.tasks)
        # Until it is in sync again, and then for one interval.
        await until(lambda: leader_of(world, topic_partition) == preferred, 4 * interval_s)

    World(Plan(seed=1, steps=0)).run(story)
