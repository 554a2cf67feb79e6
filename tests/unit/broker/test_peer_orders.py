"""Orders are carried out only if they are meant for this life, and said by who is in office."""

import asyncio
from typing import Any, cast

import pytest

from penstock.broker.cluster import Cluster
from penstock.broker.peers.orders import Orders
from penstock.controller.change import StateChange
from penstock.controller.controlled_shutdown import StaleBrokerEpoch
from penstock.controller.term import NotController
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

FAILED = TopicPartition("t", 0)


class Local:
    """A broker that only remembers; a directory of its own has failed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.changes: list[StateChange] = []

    async def apply(self, change: StateChange) -> list[TopicPartition]:
        self.changes.append(change)
        self._cluster.image = change.image
        return []

    def failed(self) -> list[TopicPartition]:
        return [FAILED]


def made(controller_epoch: int = 1) -> tuple[Orders, Local]:
    image = ClusterImage().apply(
        ImageDelta(controller=BrokerId(1), controller_epoch=controller_epoch)
    )
    cluster = Cluster(BrokerId(0), {}, image)
    local = Local(cluster)
    partitions = cast("Partitions", None)
    return Orders(BrokerId(0), cluster, partitions, cast("Any", local), cast("Any", None)), local


def update(broker_epoch: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=1, broker_epoch=broker_epoch)


@pytest.mark.parametrize(("told", "is_heard"), [(5, False), (7, True)])
def test_before_it_is_registered_a_broker_carries_nothing_out(told: int, is_heard: bool) -> None:
    """The controller may mean its former life, whose session has not ended yet."""

    async def main() -> None:
        orders, local = made()
        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(heard(orders, told))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not hearing.done()
            assert local.changes == []
            orders.registered(7)
        assert hearing.result() is is_heard
        assert len(local.changes) == is_heard

    async def heard(orders: Orders, epoch: int) -> bool:
        try:
            await orders.update_metadata(update(epoch))
        except StaleBrokerEpoch:
            return False
        return True

    asyncio.run(main())


def test_a_controller_that_was_outrun_is_refused_on_its_own_broker_too() -> None:
    async def main() -> None:
        orders, local = made(controller_epoch=5)
        known = ClusterImage().apply(ImageDelta(controller_epoch=5))
        await orders.carry_out(StateChange(image=known))
        older = ClusterImage().apply(ImageDelta(controller_epoch=4))
        with pytest.raises(NotController):
            await orders.carry_out(StateChange(image=older))
        assert [each.image.controller_epoch for each in local.changes] == [5]

    asyncio.run(main())


def test_the_controllers_own_broker_is_asked_for_failed_replicas_as_well() -> None:
    async def main() -> None:
        orders, _ = made()
        image = ClusterImage().apply(ImageDelta(controller_epoch=1))
        assert await orders.carry_out(StateChange(image=image)) == []
        joined = StateChange(image=image, joined=frozenset({BrokerId(0)}))
        assert await orders.carry_out(joined) == [FAILED]

    asyncio.run(main())
