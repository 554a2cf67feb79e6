"""Leadership goes back to preferred replicas where a broker leads too few of its partitions."""

import asyncio
from contextlib import closing

import pytest

from penstock.clock import SystemClock
from penstock.controller.topics import TopicSpec
from penstock.metadata.tree import Tree
from penstock.testing.controllers import running_controller
from penstock.types import TopicPartition

FIRST = TopicPartition("t", 0)


@pytest.mark.row("A181")
@pytest.mark.parametrize(("percentage", "leader"), [("50", 0), ("49", 1)])
def test_a_share_of_partitions_led_elsewhere_is_tolerated(percentage: str, leader: int) -> None:
    async def main() -> int:
        with closing(Tree.in_memory(SystemClock())) as tree:
            settings = {"leader.imbalance.per.broker.percentage": percentage}
            async with running_controller(tree, brokers=(0, 1), settings=settings) as running:
                new = TopicSpec("t", assignments=((0, (0, 1)), (1, (1, 0))))
                await running.controller.create_topics([new])
                # From now on broker 1 is preferred for both, and leads one of them.
                await running.controller.reassign(FIRST, [1, 0])
                await running.controller.balance_leaders()
                partition = running.controller.image.partition(FIRST)
                assert partition is not None
                return partition.leader

    assert asyncio.run(main()) == leader
