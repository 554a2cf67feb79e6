"""A follower's fetchers against a real broker, over sockets."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from penstock.broker.app import RunningBroker, running
from penstock.client.address import Address, parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.produce import NewRecord, Producer
from penstock.clock import SystemClock
from penstock.config.replication import ReplicationConfig
from penstock.config.sources import resolve
from penstock.config.topic import TopicConfig
from penstock.log.files import DiskFiles, Files
from penstock.log.store import LogStore
from penstock.record.batch import read_header
from penstock.replication.fetcher import Follower
from penstock.replication.fetchers import Fetchers
from penstock.replication.follower import FollowerLogs
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.testing.files import FakeFiles
from penstock.testing.logs import batch_of
from penstock.types import BrokerId, TopicPartition

TOPIC = "t"
QUICK = ReplicationConfig(replica_fetch_backoff_ms=10, replica_fetch_wait_max_ms=50)


class Leading:
    """Broker 0, in this test's loop, as the leader of a topic that broker 1 follows."""

    def __init__(self, broker: RunningBroker, client: Client) -> None:
        self.services, self.client = broker.services, client
        self.address = parse_addresses(broker.state.bootstrap)[0]
        self.producer = Producer(client)

    def partition(self, index: int = 0) -> Partition:
        return self.services.partitions.get(TOPIC, index)

    def lead(self, index: int, leader_epoch: int) -> None:
        partition = self.partition(index)
        partition.lead(leader_epoch, (0, 1), (0, 1), partition.partition_epoch + 1)

    def append(self, *values: bytes, index: int = 0) -> None:
        """With acks=1: nobody waits."""
        batch, partition = batch_of(*values), self.partition(index)
        partition.append(batch, read_header(batch), 1, 0)
        self.services.waiters.changed(partition.topic_partition)


@asynccontextmanager
async def leading(
    folder: Path, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Leading]:
    resolved = resolve(
        defaults={
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dir": str(folder / "leader"),
            "broker.id": "0",
            **(settings or {}),
        },
        strict=True,
    )
    async with (
        running(resolved, folder) as broker,
        Client(parse_addresses(broker.state.bootstrap)) as client,
    ):
        await create_topic(client, NewTopic(name=TOPIC, partitions=partitions))
        yield Leading(broker, client)


class Following:
    """Broker 1: logs of its own, and the fetchers under test."""

    def __init__(
        self,
        leader: Leading,
        folder: Path,
        config: ReplicationConfig = QUICK,
        files: Files | None = None,
        dirs: int = 1,
    ) -> None:
        files = files or DiskFiles()
        if not files.exists(folder):
            files.make_dir(folder)
        paths = [folder / f"follower-{number}" for number in range(dirs)]
        self.store = LogStore(files, paths, lambda _: TopicConfig(), boot_id="boot")
        self.store.load(0)
        self.partitions = Partitions(BrokerId(1), self.store)
        self.cuts: list[tuple[TopicPartition, int]] = []
        self.address: Address | None = leader.address
        self._leader = leader
        logs = FollowerLogs(
            self.store, lambda log, offset: self.cuts.append((log.topic_partition, offset))
        )
        follower = Follower(BrokerId(1), lambda: 7, lambda: config, logs, SystemClock())
        self.fetchers = Fetchers(follower, lambda _: self.address, source="127.0.0.1")

    def partition(self, index: int = 0) -> Partition:
        topic_id = self._leader.partition(index).topic_id
        return self.partitions.create(TOPIC, index, topic_id, 0)

    def follow(self, index: int = 0, leader_epoch: int | None = None) -> Partition:
        theirs, partition = self._leader.partition(index), self.partition(index)
        epoch = theirs.leader_epoch if leader_epoch is None else leader_epoch
        partition.follow(0, epoch, (0, 1), partition.partition_epoch + 1)
        self.fetchers.follow(partition)
        return partition

    @asynccontextmanager
    async def copying(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.fetchers.run())
            yield
            task.cancel()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.005)


def same(leader: Partition, follower: Partition) -> bool:
    return leader.log.end_offset == follower.log.end_offset


def committed(leader: Partition, follower: Partition) -> bool:
    return leader.log.high_watermark == follower.log.high_watermark


def files_of(partition: Partition) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(partition.log.path.glob("*.log"))}


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())


def test_acks_all_waits_for_a_follower_whose_files_are_the_leaders(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=3) as leader:
            for index in range(3):
                leader.lead(index, 3)
            follower = Following(leader, tmp_path)
            records = [NewRecord(TOPIC, b"%d" % n * 50, partition=n % 3) for n in range(300)]
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(leader.producer.send(records))
                await until(lambda: all(leader.partition(n).log.end_offset for n in range(3)))
                assert all(leader.partition(n).log.high_watermark == 0 for n in range(3))
                assert not sending.done()
                copies = [follower.follow(index) for index in range(3)]
                async with follower.copying():
                    await sending
                    for index, copy in enumerate(copies):
                        theirs = leader.partition(index)
                        assert theirs.log.high_watermark == theirs.log.end_offset
                        assert files_of(copy) == files_of(theirs)
                        assert copy.log.epochs.entries == theirs.log.epochs.entries
                        await until(partial(committed, theirs, copy))
                    state = leader.partition(0).followers[1]
                    assert (state.broker_epoch, state.log_start_offset) == (7, 0)

    run(test)


def test_what_the_leader_does_not_have_is_cut_off(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.append(b"a")
            leader.lead(0, 3)
            leader.append(b"b")
            leader.lead(0, 9)
            leader.append(b"c")
            follower = Following(leader, tmp_path)
            log = follower.partition().log
            for epoch, value in ((0, b"a"), (5, b"x"), (6, b"y")):
                batch = batch_of(value)
                if epoch == 0:  # the same record as the leader's
                    first = leader.partition().log.read(0, 1, up_to=1)
                    assert first is not None
                    log.append_as_follower(first.read(), 0)
                else:
                    log.append_as_leader(batch, read_header(batch), epoch, 0)
            copy = follower.follow()
            async with follower.copying():
                await until(lambda: files_of(copy) == files_of(leader.partition()))
                assert min(offset for _, offset in follower.cuts) == 1

    run(test)


def test_a_batch_larger_than_every_limit_comes_whole(tmp_path: Path) -> None:
    config = ReplicationConfig(
        replica_fetch_backoff_ms=10,
        replica_fetch_wait_max_ms=50,
        replica_fetch_max_bytes=1,
        replica_fetch_response_max_bytes=1,
    )

    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            follower = Following(leader, tmp_path, config)
            for index in range(2):
                leader.lead(index, 3)
                for _ in range(3):
                    leader.append(b"x" * 50_000, index=index)
                follower.follow(index)
            async with follower.copying():
                for index in range(2):
                    theirs, copy = leader.partition(index), follower.partition(index)
                    await until(partial(same, theirs, copy))
                    assert files_of(copy) == files_of(theirs)

    run(test)


def test_a_follower_that_slept_through_retention_begins_anew(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            log = leader.partition().log
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            first = log.read(0, 1, up_to=1)
            assert first is not None
            copy = follower.partition()
            copy.log.append_as_follower(first.read(), 0)
            for _ in range(4):
                leader.append(b"b")
            log.maybe_increment_log_start(3)
            leader.lead(0, 3)
            leader.append(b"c")
            follower.follow()
            async with follower.copying():
                await until(lambda: same(leader.partition(), copy))
                assert (copy.log.log_start_offset, copy.log.end_offset) == (3, 6)
                log.maybe_increment_log_start(5)
                leader.append(b"d")
                await until(lambda: copy.log.log_start_offset == 5)

    run(test)


def test_a_leader_that_has_not_heard_of_its_epoch_is_asked_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            copy = follower.follow(leader_epoch=4)
            async with follower.copying():
                await until(lambda: leader.services.fetch_sessions.partition_count == 1)
                assert copy.log.end_offset == 0
                leader.lead(0, 4)
                await until(lambda: same(leader.partition(), copy))

    run(test)


def test_a_fenced_follower_waits_for_its_controller(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            for index in range(2):
                leader.lead(index, 3)
                leader.append(b"a", index=index)
            follower = Following(leader, tmp_path)
            fenced, other = follower.follow(0, leader_epoch=2), follower.follow(1)
            async with follower.copying():
                await until(lambda: same(leader.partition(1), other))
                (fetcher,) = follower.fetchers._by_leader.values()
                await until(lambda: fenced.topic_partition not in fetcher._copied)
                assert fenced.log.end_offset == 0
                follower.follow(0, leader_epoch=3)
                await until(lambda: same(leader.partition(0), fenced))

    run(test)


def test_a_failed_directory_takes_its_own_replicas_only(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            files = FakeFiles()
            follower = Following(leader, Path("/data"), files=files, dirs=2)
            broken, other = follower.follow(0, 0), follower.follow(1, 0)
            assert broken.log.log_dir is not other.log.log_dir
            for index in range(2):
                leader.lead(index, 3)
                follower.follow(index)
            files.fail_next("append", errno.EIO)
            leader.append(b"a", index=0)
            async with follower.copying():
                await until(lambda: broken.log.log_dir.failure is not None)
                leader.append(b"b", index=1)
                await until(lambda: same(leader.partition(1), other))
                assert broken.log.end_offset == 0

    run(test)


def test_an_evicted_session_and_a_broker_without_room_for_one(tmp_path: Path) -> None:
    async def test(slots: int) -> None:
        folder = tmp_path / str(slots)
        folder.mkdir()
        settings = {"max.incremental.fetch.session.cache.slots": str(slots)}
        async with leading(folder, settings=settings) as leader:
            leader.lead(0, 3)
            follower = Following(leader, folder)
            copy = follower.follow()
            async with follower.copying():
                for _ in range(3):
                    leader.append(b"a")
                    await until(lambda: same(leader.partition(), copy))
                    leader.services.fetch_sessions._sessions.clear()
                assert files_of(copy) == files_of(leader.partition())

    run(lambda: test(10))
    run(lambda: test(0))


def test_a_leader_that_cannot_be_reached_is_tried_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            follower.address = None
            copy = follower.follow()
            async with follower.copying():
                (fetcher,) = follower.fetchers._by_leader.values()
                await asyncio.sleep(0)
                follower.address = leader.address
                await until(lambda: same(leader.partition(), copy))
                fetcher.break_connection()
                leader.append(b"b")
                await until(lambda: same(leader.partition(), copy))

    run(test)


def test_a_partition_that_is_stopped_is_copied_no_more(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            follower = Following(leader, tmp_path)
            for index in range(2):
                leader.lead(index, 3)
                follower.follow(index)
            async with follower.copying():
                follower.fetchers.stop(TopicPartition(TOPIC, 0))
                leader.append(b"a", index=0)
                leader.append(b"b", index=1)
                await until(lambda: same(leader.partition(1), follower.partition(1)))
                assert follower.partition(0).log.end_offset == 0
                follower.fetchers.stop(TopicPartition(TOPIC, 1))
                await until(lambda: not follower.fetchers._by_leader)

    run(test)
