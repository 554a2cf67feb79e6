"""When a broker starts and stops coordinating a partition."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.cluster import Cluster
from penstock.broker.coordination.coordinators import SETTLED_MS, Coordinators, partition_count
from penstock.client.commit import commit_request
from penstock.client.committed import committed_request
from penstock.client.connection import Connection, connect
from penstock.coordinator.errors import NotCoordinator
from penstock.errors import ErrorCode, StorageError
from penstock.metadata.image import ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.testing.loop import ManualLoop
from penstock.types import BrokerId, Offset, TopicPartition, Uuid
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.offset_commit import OffsetCommitResponse
from penstock.wire.messages.offset_fetch import OffsetFetchResponse
from support.brokers.leading_broker import TOPIC, Leading, leading
from support.groups.group_transcript import LoopClock

OFFSETS = "__consumer_offsets"


class Noting:
    """A coordinator that only records its notifications."""

    def __init__(self) -> None:
        self.reported: list[str] = []

    def lead(self, partition: int, log: Any) -> None:
        self.reported.append(f"lead {partition} {log}")

    def resign(self, partition: int) -> None:
        self.reported.append(f"resign {partition}")


def test_a_coordinator_that_leads_in_a_new_epoch_continues(tmp_path: Path) -> None:
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
            assert noting.reported == ["lead 0 at 3", "resign 0", "lead 0 at 6"]

    asyncio.run(main())


async def grown(leader: Leading, connection: Connection, topic: str, count: int) -> None:
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)
    response = await connection.call(request, CreatePartitionsResponse, timeout_ms=10_000)
    assert [each.error_code for each in response.results] == [0]
    assert len(leader.services.cluster.image.topics[topic].partitions) == count


def test_committed_offsets_are_found_after_their_topic_has_grown(tmp_path: Path) -> None:
    """Kafka also accepts added partitions, and uses the new count after its next start."""

    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "1"}
        async with leading(tmp_path, settings=settings) as leader:
            connection = await coordinated(leader)
            ids = {TOPIC: leader.partition().topic_id}
            names = [f"g{number}" for number in range(10)]
            for name in names:
                commit = commit_request(name, {TopicPartition(TOPIC, 0): Offset(5)}, ids)
                await connection.call(commit, OffsetCommitResponse, timeout_ms=10_000)
            await grown(leader, connection, OFFSETS, 3)
            for name in names:
                response = await connection.call(
                    committed_request(name), OffsetFetchResponse, timeout_ms=10_000
                )
                (topic,) = response.groups[0].topics
                assert topic.partitions[0].committed_offset == 5, name
            await connection.close()

    asyncio.run(main())


def test_keys_are_hashed_over_the_original_partition_count() -> None:
    def image(partitions: int, topic_id: int = 1) -> ClusterImage:
        parts = {index: PartitionRegistration((BrokerId(0),)) for index in range(partitions)}
        made = Topic(OFFSETS, Uuid(bytes(15) + bytes([topic_id])), parts)
        return ClusterImage().apply(ImageDelta(topics={OFFSETS: made}))

    cluster = Cluster(BrokerId(0), {}, ClusterImage())
    loop = ManualLoop()
    clock = LoopClock(loop)
    count = partition_count(cluster, OFFSETS, 4, clock)
    coordinators = Coordinators({}, lambda _: None, lambda _: None, [count])  # type: ignore[arg-type, return-value]
    assert count() == 4, "not made yet"
    for partitions, counted in ((3, 3), (4, 4), (9, 4)):  # announced in two parts, then grown
        cluster.image = image(partitions)
        coordinators.image_changed()
        assert count() == counted
    assert partition_count(cluster, OFFSETS, 4, clock)() == 9, "after a restart"
    cluster.image = image(6, topic_id=2)
    assert count() == 6, "another topic, made by hand"
    cluster.image = image(7, topic_id=2)
    assert count() == 7, "told in two portions"
    loop.advance(SETTLED_MS / 1000)
    cluster.image = image(12, topic_id=2)
    coordinators.image_changed()
    assert count() == 7, "grown, though never looked at since it was made"


async def coordinated(leader: Leading) -> Connection:
    """A connection to the coordinator of group g, once its topic exists."""
    connection = await connect(leader.address, client_id="test")
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    await connection.call(find, FindCoordinatorResponse, timeout_ms=10_000)
    return connection


async def ordered_to_follow(leader: Leading) -> None:
    partition = leader.services.replicas.partitions.get(OFFSETS, 0)
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
    await leader.services.control.control_plane.leader_and_isr(request)


def test_a_coordinator_on_a_failed_directory_resigns_with_its_leadership(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "1"}
        async with leading(tmp_path, settings=settings) as leader:
            connection = await coordinated(leader)
            await connection.close()
            groups, partitions = (
                leader.services.coordination.groups,
                leader.services.replicas.partitions,
            )
            assert groups.runtime.shard(0) is not None
            log_dir = partitions.get(OFFSETS, 0).log.log_dir
            log_dir.failure = StorageError("no such device")
            await ordered_to_follow(leader)
            with pytest.raises(NotCoordinator):
                groups.runtime.shard(0)
            log_dir.failure = None

    asyncio.run(main())


def test_a_coordinator_is_named_once_its_partition_is_led_here(tmp_path: Path) -> None:
    """The image has a new topic before its logs are created, see `LocalBroker`."""

    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "1"}
        async with leading(tmp_path, settings=settings) as leader:
            connection = await coordinated(leader)
            leader.services.coordination.groups.runtime.resign(0)
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            response = await connection.call(find, FindCoordinatorResponse, timeout_ms=10_000)
            (found,) = response.coordinators
            assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
            await connection.close()

    asyncio.run(main())


def code_of(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


@pytest.mark.row("A039")
def test_a_request_for_stable_offsets_learns_that_the_coordinator_moved(
    tmp_path: Path,
) -> None:
    """Asked before, during and after the move: a response without an error would mean "no
    offsets".
    """

    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "1"}
        async with leading(tmp_path, settings=settings) as leader, asyncio.timeout(20):
            connection = await coordinated(leader)
            offsets = leader.services.replicas.partitions.get(OFFSETS, 0)
            # From now on nothing is committed, since the other replica does not fetch.
            offsets.lead(offsets.leader_epoch + 1, (0, 1), (0, 1), offsets.partition_epoch + 1)
            ids = {TOPIC: leader.partition().topic_id}
            commit = commit_request("g", {TopicPartition(TOPIC, 0): Offset(5)}, ids)
            connections = [await connect(leader.address, client_id="test") for _ in range(5)]
            writer, *readers = connections
            committing = writer.send(commit, OffsetCommitResponse)
            waiting = [
                reader.send(committed_request("g"), OffsetFetchResponse, version)
                for version, reader in zip((7, 8, 9, 10), readers, strict=True)
            ]
            while len(leader.services.waiters) < 5:
                await asyncio.sleep(0)
            await ordered_to_follow(leader)
            reported = [code_of(await each) for each in waiting]
            assert reported == [ErrorCode.NOT_COORDINATOR] * 4
            refused = (await committing).topics[0].partitions[0].error_code
            assert refused == ErrorCode.NOT_COORDINATOR
            for version in (7, 8, 9, 10):
                response = await connection.send(
                    committed_request("g"), OffsetFetchResponse, version
                )
                assert code_of(response) == ErrorCode.NOT_COORDINATOR, version
            for each in (connection, *connections):
                await each.close()

    asyncio.run(main())
