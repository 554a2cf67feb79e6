"""A controller that runs for election again after it has resigned, and its topic `t`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from penstock.controller.controller_election import ControllerElection
from penstock.controller.topics import TopicSpec
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from support.brokers.controlled_topic import state


@asynccontextmanager
async def candidate(running: RunningController) -> AsyncIterator[None]:
    """A controller that resigns takes part in the next election."""
    election = ControllerElection(running.store, running.controller, lambda _: None)
    async with asyncio.TaskGroup() as tasks:
        await election.start()
        task = tasks.create_task(election.run())
        try:
            yield
        finally:
            task.cancel()


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def with_topic(
    tree: Tree,
    work: Callable[[RunningController], Awaitable[None]],
    replicas: Sequence[int] = (1, 2, 0),
) -> None:
    async def run() -> None:
        async with running_controller(tree, brokers=(0, 1, 2)) as running, candidate(running):
            new = TopicSpec("t", assignments=((0, tuple(replicas)),))
            await running.controller.create_topics([new])
            await work(running)

    asyncio.run(run())


def is_led_by(running: RunningController, broker: int) -> bool:
    return running.controller.is_active and state(running).leader == broker
