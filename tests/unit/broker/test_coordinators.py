"""When a broker takes up and gives up the coordination of a partition."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from leading_broker import TOPIC, Leading, leading
from penstock.broker.coordinators import Coordinators
from penstock.client.connection import connect
from penstock.coordinator.refusal import NotCoordinator
from penstock.errors import StorageError
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)

OFFSETS = "__consumer_offsets"


class Noting:
    """A coordinator that only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def lead(self, partition: int, log: Any) -> None:
        self.told.append(f"lead {partition} {log}")

    def resign(self, partition: int) -> None:
        self.told.append(f"resign {partition}")


def test_whoever_leads_on_in_a_new_epoch_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with leading(tmp_path) as leader:
            noting: Any = Noting()
            opened: Any = lambda partition: f"at {partition.leader_epoch}"  # noqa: E731
            coordinators = Coordinators({TOPIC: noting}, opened, lambda _: None)
            partition = leader.partition()
            for epoch in (3, 4):
                leader.lead(0, epoch)
                coordinators.led(partition)
            coordinators.not_led(partition.topic_partition)
            coordinators.not_led(partition.topic_partition)
            partition.follow(1, 5, (0, 1), 20)
            partition.lead(6, (0, 1), (0, 1), 21)
            coordinators.led(partition)
            assert noting.told == ["lead 0 at 3", "resign 0", "lead 0 at 6"]

    asyncio.run(main())


async def ordered_to_follow(leader: Leading) -> None:
    partition = leader.services.partitions.get(OFFSETS, 0)
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=99,
        leader=1,
        leader_epoch=partition.leader_epoch + 1,
        isr=[1],
        partition_epoch=partition.partition_epoch + 1,
        replicas=[0, 1],
    )
    topic = LeaderAndIsrTopicState(
        topic_name=OFFSETS, topic_id=partition.topic_id, partition_states=[state]
    )
    request = LeaderAndIsrRequest(
        controller_id=1, controller_epoch=99, broker_epoch=-1, topic_states=[topic]
    )
    await leader.services.orders.lead_and_follow(request)


def test_a_coordinator_whose_directory_has_failed_resigns_with_its_leadership(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "1"}
        async with leading(tmp_path, settings=settings) as leader:
            connection = await connect(leader.address, client_id="test")
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            await connection.call(find, FindCoordinatorResponse, timeout_ms=10_000)
            await connection.close()
            groups, partitions = leader.services.groups, leader.services.partitions
            assert groups.runtime.shard(0) is not None
            log_dir = partitions.get(OFFSETS, 0).log.log_dir
            log_dir.failure = StorageError("no such device")
            await ordered_to_follow(leader)
            with pytest.raises(NotCoordinator):
                groups.runtime.shard(0)
            log_dir.failure = None

    asyncio.run(main())
