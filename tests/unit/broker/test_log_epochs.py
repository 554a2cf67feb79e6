"""Leader epochs in the store that are older than the logs."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from penstock.broker.startup.log_epochs import MOST_LOST_EPOCHS, SKIPPED_EPOCHS, raise_epochs
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.image import ClusterImage, PartitionRegistration, Topic
from penstock.metadata.records import NO_LEADER, PartitionState, decode, encode
from penstock.metadata.store import Node
from penstock.metadata.tree import Tree
from penstock.testing.clock import ManualClock
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig, batch_of
from penstock.types import BrokerId, LeaderEpoch, Uuid

ME, OTHER = BrokerId(1), BrokerId(2)
IN_LOG, IN_STORE = 4, LeaderEpoch(1)
ANOTHER_ID = Uuid(bytes(16)[:-1] + b"\x01")


def rig(latest: int = IN_LOG) -> LogRig:
    found = LogRig()
    for epoch in (0, latest):
        found.append(batch_of(b"v"), epoch)
    return found


def image(
    topic_id: Uuid = TOPIC_ID, replicas: Sequence[BrokerId] = (ME,), epoch: int = IN_STORE
) -> ClusterImage:
    partition = PartitionRegistration(
        tuple(replicas), tuple(replicas), ME, LeaderEpoch(epoch), partition_epoch=0
    )
    topic = Topic(PARTITION.topic, topic_id, {PARTITION.partition: partition})
    return ClusterImage(topics={topic.name: topic})


class Overtaken(EmbeddedStore):
    """The controller writes right after the first read."""

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        found = await super().get_many(paths)
        for node in found.values():
            if node.version == 0:
                state = replace(decode(PartitionState, node), leader=NO_LEADER, controller_epoch=2)
                await self.set(node.path, encode(state))
        return found


async def stored(kind: type[EmbeddedStore] = EmbeddedStore) -> EmbeddedStore:
    loop = asyncio.get_running_loop()
    store = kind(Tree.in_memory(ManualClock()), loop.call_soon)
    path = paths.partition_state(PARTITION)
    for parent in paths.with_parents(path)[:-1]:
        await store.create(parent)
    state = PartitionState(controller_epoch=1, leader=ME, leader_epoch=IN_STORE, isr=(ME,))
    await store.create(path, encode(state))
    return store


async def state_in(store: EmbeddedStore) -> PartitionState:
    return decode(PartitionState, await store.get(paths.partition_state(PARTITION)))


def test_the_epoch_of_the_log_is_the_least() -> None:
    async def main() -> None:
        store = await stored()
        await raise_epochs(store, image(), ME, rig().store)
        found = await state_in(store)
        assert (found.leader_epoch, found.leader, found.isr) == (IN_LOG, ME, (ME,))

    asyncio.run(main())


@pytest.mark.parametrize(
    "known",
    [image(topic_id=ANOTHER_ID), image(replicas=(OTHER,)), image(epoch=IN_LOG), ClusterImage()],
    ids=["another topic", "no replica here", "not older", "unknown"],
)
def test_other_partitions_stay_as_they_are(known: ClusterImage) -> None:
    async def main() -> None:
        store = await stored()
        await raise_epochs(store, known, ME, rig().store)
        assert (await state_in(store)).leader_epoch == IN_STORE

    asyncio.run(main())


def test_epochs_that_other_replicas_may_have_are_skipped() -> None:
    async def main() -> None:
        store = await stored()
        await raise_epochs(store, image(replicas=(ME, OTHER)), ME, rig().store)
        assert (await state_in(store)).leader_epoch == IN_LOG + SKIPPED_EPOCHS

    asyncio.run(main())


def test_an_epoch_that_changed_on_disk_does_not_count() -> None:
    async def main() -> None:
        store, latest = await stored(), IN_STORE + MOST_LOST_EPOCHS + 1
        await raise_epochs(store, image(replicas=(ME, OTHER)), ME, rig(latest).store)
        assert (await state_in(store)).leader_epoch == IN_STORE

    asyncio.run(main())


def test_what_the_controller_writes_meanwhile_is_kept() -> None:
    async def main() -> None:
        store = await stored(kind=Overtaken)
        await raise_epochs(store, image(), ME, rig().store)
        found = await state_in(store)
        assert (found.leader_epoch, found.leader, found.controller_epoch) == (IN_LOG, NO_LEADER, 2)

    asyncio.run(main())
