"""State changes of the controller, applied to the logs of this broker."""

import asyncio
import errno
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.cluster import Cluster
from penstock.broker.peers import control_changes
from penstock.broker.replicas.local import LOGS_AT_A_TIME, PARTITIONS_PER_TURN, LocalBroker
from penstock.broker.waiters import Waiters
from penstock.clock import Clock, SystemClock
from penstock.config.topic import TopicConfig
from penstock.controller.control_requests import PARTITIONS_PER_REQUEST, control_requests
from penstock.controller.state_change import PartitionChange, StateChange, StoppedReplicas
from penstock.errors import StorageError
from penstock.log.flush import OffLoop
from penstock.log.log_dir import LogDir
from penstock.metadata.image import Broker, ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.replication.partitions import Partitions
from penstock.testing.clock import ManualClock
from penstock.testing.files import FakeFile, FakeFiles
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig, batch_of
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition, Uuid
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

BROKER = BrokerId(0)
ANOTHER_ID = Uuid(bytes(15) + b"2")


class Noting:
    """Fetchers, compactor and coordinators that only record their calls."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.gone: list[TopicPartition] = []
        self.forgotten: list[list[TopicPartition]] = []

    def stop(self, where: TopicPartition) -> None:
        self.reported.append(f"stop {where}")

    def image_changed(self) -> None: ...

    def led(self, partition: Any) -> None:
        self.reported.append(f"led {partition.topic_partition}")

    def not_led(self, where: TopicPartition) -> None:
        self.reported.append(f"not led {where}")

    def deleted(self, partitions: Collection[TopicPartition]) -> None:
        self.gone += partitions

    def forget(self, _log_dir: LogDir, partitions: Collection[TopicPartition]) -> None:
        self.forgotten.append(list(partitions))


async def off_loop(work: Callable[[], None]) -> None:
    """Does the work a turn later, as a thread would."""
    await asyncio.sleep(0)
    work()


class Rig:
    def __init__(self) -> None:
        self.logs, self.noting = LogRig(), Noting()
        self.partitions = Partitions(BROKER, self.logs.store)
        self.cluster = Cluster(BROKER, {}, ClusterImage())
        self.clock: Clock = SystemClock()

    def local(self, off_loop: OffLoop = off_loop) -> LocalBroker:
        noting: Any = self.noting
        waiters = Waiters(asyncio.get_running_loop())
        return LocalBroker(
            BROKER,
            self.cluster,
            self.partitions,
            noting,
            waiters,
            noting,
            noting,
            self.clock,
            off_loop,
            lambda _: None,
            lambda _: None,
        )

    async def apply(self, change: StateChange) -> list[TopicPartition]:
        return await self.local().apply(change)


def image_of(*topics: Topic) -> ClusterImage:
    return ClusterImage().apply(ImageDelta(topics={each.name: each for each in topics}))


def led(
    topic_id: Uuid, *, epoch: int, topic_partition: TopicPartition = PARTITION, is_new: bool = False
) -> PartitionChange:
    state = PartitionRegistration((BROKER,), (BROKER,), BROKER, LeaderEpoch(epoch), 0)
    return PartitionChange(topic_partition, topic_id, state, is_new)


def new_topic(partitions: int) -> StateChange:
    """The creation of a topic with new partitions on this broker."""
    changes = [
        led(TOPIC_ID, epoch=0, topic_partition=TopicPartition("big", index), is_new=True)
        for index in range(partitions)
    ]
    return StateChange(image=ClusterImage(), partitions=tuple(changes))


def test_an_added_in_sync_replica_gets_no_empty_log_while_its_directory_is_offline() -> None:
    """It may lead as the last replica in sync: an empty log would lose acknowledged records."""
    rig = Rig()
    rig.logs = LogRig(dirs=("d0", "d1"))
    rig.logs.append(batch_of(b"acknowledged"))
    rig.logs.store.close()
    rig.logs.fake.fail_next("open", errno.EIO)
    rig.logs.store = rig.logs._open_store()
    rig.partitions = Partitions(BROKER, rig.logs.store)
    replicas, isr = (BROKER, BrokerId(1)), (BROKER,)
    state = PartitionRegistration(
        replicas, isr, BROKER, LeaderEpoch(1), 0, adding_replicas=(BROKER,)
    )
    moving = PartitionChange(PARTITION, TOPIC_ID, state)
    change = StateChange(image=image_of(), partitions=(moving,))
    assert asyncio.run(rig.apply(change)) == [PARTITION]
    assert rig.logs.store.logs == {}
    assert rig.noting.reported == [f"not led {PARTITION}", f"stop {PARTITION}"]


def test_a_topic_created_again_starts_without_the_deleted_topics_records() -> None:
    """The old replica was never stopped, and its leader epochs were higher."""

    async def main() -> None:
        rig = Rig()
        await rig.apply(StateChange(image=ClusterImage(), partitions=(led(TOPIC_ID, epoch=5),)))
        rig.logs.append(batch_of(b"of the deleted topic"))
        rig.noting.reported.clear()
        await rig.apply(StateChange(image=ClusterImage(), partitions=(led(ANOTHER_ID, epoch=0),)))
        partition = rig.partitions.get(*PARTITION)
        assert (partition.leads, partition.leader_epoch, partition.log.end_offset) == (True, 0, 0)
        assert rig.noting.reported[:2] == ["not led orders-0", "stop orders-0"]
        assert rig.noting.reported[-1] == "led orders-0"
        assert rig.logs.store.count_stray() == 1

    asyncio.run(main())


def test_a_deletion_keeps_the_log_of_a_new_topic_of_that_name() -> None:
    async def main() -> None:
        rig = Rig()
        rig.logs.append(batch_of(b"x"))
        stopped = StoppedReplicas(PARTITION, ANOTHER_ID, (BROKER,))
        assert await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,))) == []
        assert rig.logs.store.logs == {}
        assert not rig.logs.store.deleted
        assert rig.logs.store.count_stray() == 1

    asyncio.run(main())


def test_requests_are_served_while_many_replicas_stop() -> None:
    async def main() -> None:
        rig, count = Rig(), 5 * PARTITIONS_PER_TURN
        places = [TopicPartition("big", index) for index in range(count)]
        for where in places:
            rig.partitions.create(*where, TOPIC_ID, 0)
        stopped = tuple(StoppedReplicas(each, TOPIC_ID, (BROKER,)) for each in places)
        left = [len(rig.partitions)]
        async with asyncio.TaskGroup() as tasks:
            change = StateChange(image=ClusterImage(), stopped=stopped)
            stopping = tasks.create_task(rig.apply(change))
            while not stopping.done():
                await asyncio.sleep(0)
                left.append(len(rig.partitions))
        in_a_turn = [before - after for before, after in pairwise(left)]
        assert max(in_a_turn) <= PARTITIONS_PER_TURN
        assert left[-1] == 0
        assert rig.noting.forgotten == [places], "one write of the cleaner's marks for all"

    asyncio.run(main())


def test_requests_are_served_after_each_replica_while_the_file_system_is_slow() -> None:
    class SlowFiles(FakeFiles):
        def rename(self, old: Path, new: Path) -> None:
            clock.advance(1)
            super().rename(old, new)

    async def main() -> None:
        rig, count = Rig(), 2 * PARTITIONS_PER_TURN
        rig.logs = LogRig(files=SlowFiles())
        rig.partitions, rig.clock = Partitions(BROKER, rig.logs.store), clock
        places = [TopicPartition("big", index) for index in range(count)]
        for where in places:
            rig.partitions.create(*where, TOPIC_ID, 0)
        stopped = tuple(StoppedReplicas(each, TOPIC_ID, (BROKER,)) for each in places)
        left = [len(rig.partitions)]
        async with asyncio.TaskGroup() as tasks:
            change = StateChange(image=ClusterImage(), stopped=stopped)
            stopping = tasks.create_task(rig.apply(change))
            while not stopping.done():
                await asyncio.sleep(0)
                left.append(len(rig.partitions))
        assert max(before - after for before, after in pairwise(left)) == 1
        assert left[-1] == 0

    clock = ManualClock()
    asyncio.run(main())


def test_the_deletion_of_a_large_topic_removes_all_its_offsets() -> None:
    """A remote broker receives the deletion in several requests."""

    async def main() -> None:
        rig, count = Rig(), 2 * PARTITIONS_PER_REQUEST + 500
        topic = Topic(
            "big", TOPIC_ID, {n: PartitionRegistration((BrokerId(1),)) for n in range(count)}
        )
        listener = Broker(BROKER, 5, ())
        before = image_of(topic).apply(ImageDelta(brokers={BROKER: listener}))
        places = [TopicPartition("big", index) for index in range(count)]
        change = StateChange(
            image=before.apply(ImageDelta(topics={"big": None})),
            stopped=tuple(StoppedReplicas(each, TOPIC_ID, (BrokerId(1),)) for each in places),
        )
        rig.cluster.image = before
        reported = control_requests(change, listener, "PLAINTEXT")
        for each in reported:
            assert isinstance(each, UpdateMetadataRequest)
            await rig.apply(control_changes.metadata_change(each, rig.cluster.image, {}))
        assert len(reported) > 1
        assert sorted(rig.noting.gone) == places

    asyncio.run(main())


def test_offsets_stay_when_a_replica_moves_to_another_broker() -> None:
    async def main() -> None:
        rig = Rig()
        topic = Topic("orders", TOPIC_ID, {0: PartitionRegistration((BrokerId(1),))})
        for topic_id in (TOPIC_ID, NO_UUID):
            stopped = StoppedReplicas(PARTITION, topic_id, (BROKER,))
            await rig.apply(StateChange(image=image_of(topic), stopped=(stopped,)))
        assert rig.noting.gone == []
        of_before = StoppedReplicas(PARTITION, ANOTHER_ID, ())
        await rig.apply(StateChange(image=image_of(topic), stopped=(of_before,)))
        assert rig.noting.gone == [PARTITION], "the topic was made anew"

    asyncio.run(main())


def test_a_stray_replica_is_neither_led_nor_followed_and_its_log_is_kept() -> None:
    async def main() -> None:
        rig = Rig()
        await rig.apply(StateChange(image=ClusterImage(), partitions=(led(TOPIC_ID, epoch=5),)))
        partition = rig.partitions.get(*PARTITION)
        local = rig.local()
        assert local.held() == local.held({PARTITION.topic}) == {PARTITION: TOPIC_ID}
        assert local.held({"another"}) == {}
        rig.noting.reported.clear()
        await local.set_aside({PARTITION: "is assigned to other brokers now"})
        assert not partition.leads
        assert local.held() == {}
        assert rig.partitions.find(*PARTITION) is None
        assert rig.logs.store.count_stray() == 1
        assert rig.noting.reported == ["not led orders-0", "stop orders-0"]

    asyncio.run(main())


def test_a_deletion_that_a_crash_may_undo_is_not_reported() -> None:
    async def main() -> None:
        rig = Rig()
        stopped = StoppedReplicas(PARTITION, TOPIC_ID, (BROKER,))
        rig.logs.fake.fail_next("sync_dir", errno.EIO)
        for _ in range(2):  # another controller repeats the deletion
            failed = await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,)))
            assert failed == [PARTITION]

    asyncio.run(main())


def test_an_interrupted_deletion_is_synced_when_it_is_repeated() -> None:
    async def main() -> None:
        rig = Rig()
        rig.logs.flush()
        rig.partitions.drop(*PARTITION, sync=False)
        stopped = StoppedReplicas(PARTITION, TOPIC_ID, (BROKER,))
        assert await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,))) == []
        rig.logs.crash()
        assert rig.logs.store.logs == {}

    asyncio.run(main())


def test_a_confirmed_deletion_survives_a_crash() -> None:
    async def main() -> None:
        rig = Rig()
        rig.logs.append(batch_of(b"x"))
        rig.logs.flush()
        stopped = StoppedReplicas(PARTITION, TOPIC_ID, (BROKER,))
        for _ in range(2):
            assert await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,))) == []
        rig.logs.crash()
        assert rig.logs.store.logs == {}

    asyncio.run(main())


def test_a_log_on_a_failed_disk_is_never_reported_as_deleted() -> None:
    async def main() -> None:
        rig = Rig()
        rig.partitions.create(*PARTITION, TOPIC_ID, 0)
        rig.logs.store.dirs[0].fail(StorageError("Input/output error"))
        stopped = StoppedReplicas(PARTITION, TOPIC_ID, (BROKER,))
        for _ in range(2):  # another controller repeats the deletion
            failed = await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,)))
            assert failed == [PARTITION]

    asyncio.run(main())


def test_a_log_that_may_be_in_an_unread_directory_is_not_reported_as_deleted() -> None:
    async def main() -> None:
        rig = Rig()
        rig.logs.store.close()
        rig.logs.fake.fail_next("open", errno.EIO)
        rig.logs.store = rig.partitions.store = rig.logs._open_store()
        stopped = StoppedReplicas(PARTITION, TOPIC_ID, (BROKER,))
        failed = await rig.apply(StateChange(image=ClusterImage(), stopped=(stopped,)))
        assert failed == [PARTITION]

    asyncio.run(main())


def test_files_of_new_logs_and_syncs_of_deletions_do_not_hold_up_the_loop() -> None:
    """A file system took milliseconds for each, and requests waited for twenty and more."""

    async def main() -> None:
        rig, count = Rig(), 2 * LOGS_AT_A_TIME + 1
        fake, on_threads = rig.logs.fake, 0

        async def counted(work: Callable[[], None]) -> None:
            nonlocal on_threads
            before = fake.operations
            await off_loop(work)
            on_threads += fake.operations - before

        before = fake.operations
        assert await rig.local(counted).apply(new_topic(count)) == []
        assert on_threads == fake.operations - before > 0
        assert all(rig.partitions.get("big", index).leads for index in range(count))

        rig.partitions.drop("big", 0, sync=False)
        before, on_threads = fake.operations, 0
        stopped = StoppedReplicas(TopicPartition("big", 0), TOPIC_ID, (BROKER,))
        await rig.local(counted).apply(StateChange(image=ClusterImage(), stopped=(stopped,)))
        assert on_threads == fake.operations - before > 0

    asyncio.run(main())


def test_settings_altered_while_a_log_is_created_apply_to_it() -> None:
    """Retention by the old ones would delete records."""

    async def main() -> None:
        rig = Rig()

        async def altering(work: Callable[[], None]) -> None:
            await off_loop(work)
            rig.logs.config = TopicConfig(retention_ms=-1, max_message_bytes=7)

        assert await rig.local(altering).apply(new_topic(2)) == []
        for index in range(2):
            partition = rig.partitions.get("big", index)
            assert partition.log.config.retention_ms == -1
            assert partition.rules.max_message_bytes == 7

    asyncio.run(main())


def test_new_logs_survive_a_crash_once_they_are_flushed() -> None:
    async def main() -> None:
        rig = Rig()
        await rig.apply(new_topic(1))
        rig.logs.store.logs[TopicPartition("big", 0)].flush()
        rig.logs.crash()
        assert rig.logs.store.topic_ids[TopicPartition("big", 0)] == TOPIC_ID

    asyncio.run(main())


@pytest.mark.parametrize("operation", ["make_dir", "open"])
def test_a_log_whose_directory_fails_at_its_creation_is_not_created_in_another(
    operation: str,
) -> None:
    """The next start would find it in both, and refuse to run. Other logs are not begun yet."""

    async def main() -> None:
        rig = Rig()
        rig.logs = LogRig(dirs=("d0", "d1"))  # d0 has the first log, so d1 gets the next
        rig.partitions = Partitions(BROKER, rig.logs.store)
        rig.logs.fake.fail_next(operation, errno.EIO)
        assert await rig.apply(new_topic(4)) == [TopicPartition("big", 0)]
        assert [each.path.name for each in rig.logs.store.online] == ["d0"]
        placed = {each: log.log_dir.path.name for each, log in rig.logs.store.logs.items()}
        assert placed == {
            PARTITION: "d0",
            **{TopicPartition("big", index): "d0" for index in range(1, 4)},
        }

    asyncio.run(main())


@pytest.mark.parametrize("at", [1, 2])
def test_a_log_that_lacks_descriptors_at_first_is_whole_when_it_is_created(at: int) -> None:
    class ScarceFiles(FakeFiles):
        opens_left = -1

        def open(self, path: Path, *, create: bool = False) -> FakeFile:
            self.opens_left -= 1
            if self.opens_left == 0:
                self.fail_next("open", errno.EMFILE)
            return super().open(path, create=create)

    async def main() -> None:
        rig, files = Rig(), ScarceFiles()
        rig.logs = LogRig(files=files)
        rig.logs.fake, rig.partitions = files, Partitions(BROKER, rig.logs.store)
        files.opens_left = at
        assert await rig.apply(new_topic(2)) == []
        for index in range(2):
            assert rig.partitions.get("big", index).leads
            rig.logs.store.logs[TopicPartition("big", index)].flush()
        rig.logs.crash()
        ids = rig.logs.store.topic_ids
        assert [ids[TopicPartition("big", index)] for index in range(2)] == [TOPIC_ID] * 2

    asyncio.run(main())
