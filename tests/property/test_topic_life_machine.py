"""Topics are created, grow, change and are deleted while the controller dies at any transaction."""

import asyncio
from collections.abc import Awaitable, Callable

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.clock import SystemClock
from penstock.controller.configs import AlterOperation, ConfigAlteration, TopicResource
from penstock.controller.topics import MorePartitions, PlannedTopic, TopicSpec
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ClusterImage
from penstock.metadata.reader import read_image
from penstock.metadata.tree import Tree
from penstock.testing.controllers import CrashError, RunningController, running_controller
from penstock.types import Uuid

NAMES = ("a", "b", "c")
NEVER = 10_000

names = st.sampled_from(NAMES)
crashes = st.sampled_from([NEVER, NEVER, 2, 4, 5, 5, 6, 6, 7, 8, 9])
"""The number of transactions after which the process dies; its startup takes the first four."""


class TopicLife(RuleBasedStateMachine):
    """Answered operations survive any crash; others are done completely or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree.in_memory(SystemClock())
        self.known: dict[str, int] = {}
        """Topics with their number of partitions."""
        self.uncertain: set[str] = set()
        """Topics of interrupted operations, for which any outcome is right."""
        self.ids: dict[str, Uuid] = {}
        self.starts = 0

    def teardown(self) -> None:
        self.tree.close()

    def attempt(
        self, work: Callable[[RunningController], Awaitable[None]], writes: int, *touched: str
    ) -> None:
        async def run() -> None:
            async with running_controller(self.tree, seed=self.starts, writes=writes) as running:
                await work(running)

        self.starts += 1
        try:
            asyncio.run(run())
        except* CrashError:
            self.uncertain |= set(touched)

    @rule(name=names, partitions=st.integers(1, 4), writes=crashes)
    def create(self, name: str, partitions: int, writes: int) -> None:
        async def work(running: RunningController) -> None:
            (outcome,) = await running.controller.create_topics([TopicSpec(name, partitions, 1)])
            if name not in self.uncertain:
                assert isinstance(outcome, PlannedTopic) == (name not in self.known)
            if isinstance(outcome, PlannedTopic):
                self.known[name] = partitions
                self.uncertain.discard(name)
                assert self.ids.get(name) != outcome.topic.id
                self.ids[name] = outcome.topic.id

        self.attempt(work, writes, name)

    @rule(name=names, writes=crashes)
    def delete(self, name: str, writes: int) -> None:
        async def work(running: RunningController) -> None:
            outcome = (await running.controller.delete_topics([name]))[name]
            if name not in self.uncertain:
                assert isinstance(outcome, KafkaError) == (name not in self.known)
            self.known.pop(name, None)
            self.uncertain.discard(name)
            assert name not in running.controller.image.topics

        self.attempt(work, writes, name)

    @rule(name=names, more=st.integers(1, 3), writes=crashes)
    def grow(self, name: str, more: int, writes: int) -> None:
        async def work(running: RunningController) -> None:
            if name in running.controller.image.topics:
                count = len(running.controller.image.topics[name].partitions) + more
                await running.controller.create_partitions(MorePartitions(name, count))
                if name not in self.uncertain:
                    self.known[name] = count

        self.attempt(work, writes, name)

    @rule(name=names, retention_ms=st.integers(1, 9), writes=crashes)
    def configure(self, name: str, retention_ms: int, writes: int) -> None:
        async def work(running: RunningController) -> None:
            if name in running.controller.image.topics:
                value = str(retention_ms)
                await running.controller.alter_config(
                    TopicResource(name),
                    [ConfigAlteration("retention.ms", AlterOperation.SET, value)],
                )
                config = running.controller.image.topic_configs[name]
                assert config["retention.ms"] == value

        self.attempt(work, writes)

    @rule(writes=crashes)
    def start(self, writes: int) -> None:
        async def nothing(_: RunningController) -> None: ...

        self.attempt(nothing, writes)

    @invariant()
    def whoever_starts_next_finds_everything_whole(self) -> None:
        async def work(running: RunningController) -> None:
            image = running.controller.image
            stored = await read_image(running.store)
            assert image == stored, "the controller's image is what the store holds"
            self.check_topics(image)
            assert await running.store.children(paths.DELETE_TOPICS) == []
            assert set(await running.store.children(paths.CONFIG_TOPICS)) == set(image.topics)
            reported = {each.topic_partition for each in running.last_change.partitions}
            assert reported == {(t.name, i) for t in image.topics.values() for i in t.partitions}

        async def run() -> None:
            async with running_controller(self.tree, seed=self.starts) as running:
                await work(running)

        self.starts += 1
        asyncio.run(run())

    def check_topics(self, image: ClusterImage) -> None:
        for name in set(NAMES) - self.uncertain:
            assert (name in image.topics) == (name in self.known)
            if name in self.known:
                assert len(image.topics[name].partitions) == self.known[name]
                assert image.topics[name].id == self.ids[name]
        for topic in image.topics.values():
            assert set(topic.partitions) == set(range(len(topic.partitions)))
            for partition in topic.partitions.values():
                assert (partition.leader, partition.isr) == (0, (0,))
        # The outcomes that a crash left uncertain are known now.
        for name in self.uncertain:
            self.known.pop(name, None)
            if name in image.topics:
                self.known[name] = len(image.topics[name].partitions)
                self.ids[name] = image.topics[name].id
        self.uncertain.clear()


TestTopicLife = TopicLife.TestCase
TestTopicLife.settings = settings(stateful_step_count=20)
