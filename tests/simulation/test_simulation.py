"""Brokers keep their promises whatever fails; a broken rule is noticed; bugs stay fixed.

A failure names its seed and prints the last events. `World(Plan(seed, STEPS)).run(everything)`
repeats it, event by event.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.errors import StorageError
from simulation.history import History, Violation
from simulation.mutants import MUTANTS, Mutant
from simulation.nemesis import Nemesis, everything
from simulation.steps import Story, controller_of, until
from simulation.stories import STORIES
from simulation.topic_stories import TOPIC_STORIES
from simulation.worker_stories import PLAN as WORKERS
from simulation.worker_stories import WORKER_STORIES
from simulation.world import Plan, World

STEPS = 15_000
SEEDS = range(8)
MUTANT_STEPS = 8_000
MUTANT_SEEDS = range(40)
STORY_HEAL_S = 20
"""Long enough for each story; a world that does not recover is simulated for this long."""


def tracebacks(history: History) -> list[str]:
    return [each for each in history.counts if each.startswith("traceback")]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in SEEDS[1:])]
)
def test_promises_are_kept_whatever_fails(seed: int) -> None:
    world = World(Plan(seed, STEPS))
    history = world.run(everything)
    assert world.loop.steps >= STEPS
    assert history.counts["acked"] > 50, "nothing went right either"
    assert history.counts["read"] > 50
    assert tracebacks(history) == [], "something happened that nobody expected"


@pytest.mark.slow
def test_promises_are_kept_while_topics_grow_and_settings_change() -> None:
    faults = ("grow", "grow anew", "required", "flush", "throttle", "restart and move", "kill")
    world = World(Plan(0, STEPS, faults=faults, wide=True))
    history = world.run(everything)
    assert len(world.partitions) > world.plan.partitions, "no topic has grown"
    assert tracebacks(history) == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_promises_are_kept_in_a_long_run() -> None:
    for seed in range(1_000, 1_500):
        wide, partitions = seed % 2 == 1, 1 + seed % 4
        plan = Plan(seed, 4 * STEPS, brokers=3 + seed % 3, partitions=partitions, wide=wide)
        history = World(plan).run(everything)
        assert tracebacks(history) == [], f"seed {seed}"


def test_a_seed_determines_everything() -> None:
    runs = [World(Plan(3, 4_000)).run(everything) for _ in range(2)]
    assert runs[0].digest == runs[1].digest
    assert runs[0].counts == runs[1].counts


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.apply.__name__)
def test_a_broken_rule_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.apply(monkeypatch)
    if mutant.story is not None:
        with pytest.raises(Violation):
            World(plan_of(mutant.story)).run(mutant.story)
        return
    for seed in (mutant.seed, *(each for each in MUTANT_SEEDS if each != mutant.seed)):
        try:
            plan = Plan(seed, MUTANT_STEPS, faults=mutant.faults, heal_s=2 * STORY_HEAL_S)
            World(plan).run(everything)
        except Violation as violation:
            print(f"seed {seed}: {violation}".split("\n")[0])
            return
    pytest.fail("no seed noticed it")


# Stories: one fault each, and the required outcome.


def plan_of(story: Story) -> Plan:
    return WORKERS if story in WORKER_STORIES else Plan(1, 0, heal_s=STORY_HEAL_S)


def run_story(story: Callable[[World], Awaitable[None]]) -> None:
    history = World(plan_of(story)).run(story)
    assert tracebacks(history) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "story", [*STORIES, *TOPIC_STORIES, *WORKER_STORIES], ids=lambda each: each.__name__
)
def test_a_story_ends_well(story: Story) -> None:
    run_story(story)


def test_a_failed_directory_on_the_controllers_broker_is_noticed() -> None:
    async def story(world: World) -> None:
        where = world.partitions[0]
        while controller_of(world) not in world.assignment(where)[0]:
            await Nemesis(world).depose()
            await asyncio.sleep(2)
        number = controller_of(world)
        await until(lambda: world.partition(number, where) is not None, 20)
        partition = world.partition(number, where)
        assert partition is not None
        began = world.loop.time()
        world.brokers[number].disk.failed.add(str(partition.log.log_dir.path))
        partition.log.log_dir.fail(StorageError("Input/output error"))

        def is_out() -> bool:
            state = world.state(where)
            return state is not None and number not in list(state["isr"])  # type: ignore[call-overload]

        await until(is_out, 10)
        assert world.loop.time() - began < 1, "only its lag was noticed"

    run_story(story)


@pytest.mark.parametrize("of_controller", [False, True])
def test_a_replica_in_a_failed_directory_is_given_up(of_controller: bool) -> None:
    """Its broker reports that it cannot delete the log, and executes all other requests."""

    async def story(world: World) -> None:
        where = world.partitions[0]
        replicas, _ = world.assignment(where)
        while controller_of(world) not in replicas:
            await Nemesis(world).depose()
            await asyncio.sleep(2)
            replicas, _ = world.assignment(where)  # a controller may be deposed while it moves one
        number = next(each for each in replicas if (each == controller_of(world)) is of_controller)
        (spare,) = set(range(world.plan.brokers)) - set(replicas)
        await until(lambda: world.partition(number, where) is not None, 20)
        partition, running = world.partition(number, where), world.brokers[number].running
        assert partition is not None
        assert running is not None
        world.brokers[number].disk.failed.add(str(partition.log.log_dir.path))
        partition.log.log_dir.fail(StorageError("Input/output error"))
        nemesis = Nemesis(world)
        target = [spare if each == number else each for each in replicas]
        await world.spawn(world.tasks, "admin", nemesis.reassign(where, target))
        await until(lambda: world.assignment(where) == (target, False), 20)
        await world.spawn(world.tasks, "admin", nemesis.create("later"))
        await until(lambda: "later" in running.services.cluster.image.topics, 20)

    run_story(story)


def test_a_broker_stops_although_its_directory_fails_meanwhile() -> None:
    async def story(world: World) -> None:
        broker = world.brokers[0]
        stopping = world.tasks.create_task(broker.stop())
        await asyncio.sleep(0)
        broker.disk.failed.add("/data/d0")
        await stopping
        assert broker.error is None

    run_story(story)
