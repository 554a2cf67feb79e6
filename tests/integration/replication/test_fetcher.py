"""A follower's fetchers against a real broker, over sockets."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from penstock.client.address import Address
from penstock.client.errors import ConnectionFailed
from penstock.client.produce import ProducerRecord
from penstock.config.replication import ReplicationConfig
from penstock.config.topic import TopicConfig
from penstock.log.files import Files, OutOfFiles
from penstock.log.follower_append import append_as_follower
from penstock.log.partition_log import PartitionLog
from penstock.record.batch import CorruptBatch, assign, read_header
from penstock.replication.fetcher import FIRST_BACKOFF_MS
from penstock.replication.fetchers import Fetchers, SetupTimeout
from penstock.replication.partition import Partition
from penstock.testing.clock import ManualClock
from penstock.testing.files import FakeFiles
from penstock.testing.logs import batch_of
from penstock.types import TopicPartition
from support.brokers.following_broker import (
    QUICK,
    FollowingBroker,
    flushed,
    log_files,
    until,
)
from support.brokers.leading_broker import TOPIC, Leading, leading


class Following(FollowingBroker):
    """Broker 1, with the metadata that it needs about the leader's partitions."""

    def __init__(
        self,
        leader: Leading,
        folder: Path,
        config: ReplicationConfig = QUICK,
        files: Files | None = None,
        dirs: int = 1,
    ) -> None:
        super().__init__(leader.address, folder, config, files, dirs)
        self._leader = leader

    def copy(self, index: int = 0) -> Partition:
        return self.partition(TopicPartition(TOPIC, index), self._leader.partition(index).topic_id)

    def begin(self, index: int = 0, leader_epoch: int | None = None) -> Partition:
        copy, epoch = self.copy(index), self._leader.partition(index).leader_epoch
        self.follow(copy, epoch if leader_epoch is None else leader_epoch)
        return copy


def same(leader: Partition, follower: Partition) -> bool:
    return leader.log.end_offset == follower.log.end_offset


def committed(leader: Partition, follower: Partition) -> bool:
    return leader.log.high_watermark == follower.log.high_watermark


def files_of(partition: Partition) -> dict[str, bytes]:
    return log_files(partition.log.path)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())


@pytest.mark.row("A065")
def test_acks_all_waits_for_a_follower_whose_files_equal_the_leaders(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=3) as leader:
            for index in range(3):
                leader.lead(index, 3)
            follower = Following(leader, tmp_path)
            records = [ProducerRecord(TOPIC, b"%d" % n * 50, partition=n % 3) for n in range(300)]
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(leader.producer.send(records))
                await until(lambda: all(leader.partition(n).log.end_offset for n in range(3)))
                assert all(leader.partition(n).log.high_watermark == 0 for n in range(3))
                assert not sending.done()
                copies = [follower.begin(index) for index in range(3)]
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


@pytest.mark.parametrize(
    "failure", [None, OutOfFiles("too many open files"), CorruptBatch("damaged")]
)
def test_a_copy_counts_once_flushed_if_the_topic_requires_it(
    tmp_path: Path, failure: Exception | None
) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            follower = Following(leader, tmp_path)
            copy = follower.begin()
            copy.configure(TopicConfig(flush_messages=1))
            flushes: list[Future[int]] = []

            def flush(_: PartitionLog) -> Future[int]:
                flushes.append(Future())
                return flushes[-1]

            follower.flush = flush
            leader.append(b"a")
            async with follower.copying():
                await until(lambda: bool(flushes))
                assert same(leader.partition(), copy)
                if failure is not None:
                    flushes[0].set_exception(failure)
                    await until(lambda: len(flushes) == 2)
                assert leader.partition().log.high_watermark == 0
                copy.log.flush()
                flushes[-1].set_result(1)
                await until(lambda: leader.partition().log.high_watermark == 1)

    run(test)


def test_records_from_a_former_leader_are_flushed_before_they_count(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            copy = follower.copy()
            first = leader.partition().log.read(0, 1, up_to=1)
            assert first is not None
            append_as_follower(copy.log, first.read(), 0)
            copy.configure(TopicConfig(flush_messages=1))
            flushes: list[Future[int]] = []

            def flush(log: PartitionLog) -> Future[int]:
                flushes.append(flushed(log))
                return flushes[-1]

            follower.flush = flush
            follower.begin()
            async with follower.copying():
                await until(lambda: leader.partition().log.high_watermark == 1)
                assert len(flushes) == 1

    run(test)


def test_a_copy_that_arrives_during_a_flush_is_flushed_too(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, 2) as leader:
            follower = FollowingBroker(leader.address, tmp_path, QUICK)
            flushes: list[tuple[PartitionLog, Future[int]]] = []

            def flush(log: PartitionLog) -> Future[int]:
                flushes.append((log, Future()))
                return flushes[-1][1]

            follower.flush = flush
            copies = []
            for index in (0, 1):
                leader.lead(index, 3)
                leader.append(b"a", index=index)
                led = leader.partition(index)
                copy = follower.partition(TopicPartition(TOPIC, index), led.topic_id)
                first = led.log.read(0, 1, up_to=1)
                assert first is not None
                append_as_follower(copy.log, first.read(), 0)
                copy.configure(TopicConfig(flush_messages=1))
                copies.append(copy)
            follower.follow(copies[0], 3)
            async with follower.copying():
                await until(lambda: len(flushes) == 1)
                follower.follow(copies[1], 3)
                flushes[0][0].flush()
                flushes[0][1].set_result(1)
                await until(lambda: len(flushes) == 2)
                assert flushes[1][0] is copies[1].log
                assert leader.partition(1).log.high_watermark == 0
                flushes[1][0].flush()
                flushes[1][1].set_result(1)
                await until(lambda: leader.partition(1).log.high_watermark == 1)

    run(test)


class SlowClock(ManualClock):
    """Advances by a first backoff at each reading."""

    def monotonic_ms(self) -> int:
        self.advance(FIRST_BACKOFF_MS)
        return super().monotonic_ms()


def test_a_flush_is_retried_although_its_backoff_ends_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = FollowingBroker(leader.address, tmp_path, clock=SlowClock())
            copy = follower.partition(TopicPartition(TOPIC, 0), leader.partition().topic_id)
            copy.configure(TopicConfig(flush_messages=1))
            flushes = 0

            def flush(log: PartitionLog) -> Future[int]:
                nonlocal flushes
                flushes += 1
                if flushes > 1:
                    return flushed(log)
                failed: Future[int] = Future()
                failed.set_exception(OutOfFiles("too many open files"))
                return failed

            follower.flush = flush
            follower.follow(copy, 3)
            async with follower.copying():
                await until(lambda: leader.partition().log.high_watermark == 1)

    run(test)


def test_records_that_the_leader_lacks_are_truncated(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.append(b"a")
            leader.lead(0, 3)
            leader.append(b"b")
            leader.lead(0, 9)
            leader.append(b"c")
            follower = Following(leader, tmp_path)
            log = follower.copy().log
            for epoch, value in ((0, b"a"), (5, b"x"), (6, b"y")):
                batch = batch_of(value)
                if epoch == 0:  # the same record as the leader's
                    first = leader.partition().log.read(0, 1, up_to=1)
                    assert first is not None
                    append_as_follower(log, first.read(), 0)
                else:
                    log.append_as_leader(batch, read_header(batch), epoch, 0)
            copy = follower.begin()
            async with follower.copying():
                await until(lambda: files_of(copy) == files_of(leader.partition()))
                assert min(offset for _, offset in follower.cuts) == 1

    run(test)


def test_a_last_batch_whose_offset_is_damaged_is_fetched_again(tmp_path: Path) -> None:
    """No CRC covers it, and the leader's next batches may follow it without an overlap."""

    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            files = FakeFiles()
            copy = Following(leader, tmp_path, files=files).copy()
            for n in range(30):
                leader.append(b"%d" % n)
                found = leader.partition().log.read(n, 1, up_to=n + 1)
                assert found is not None
                if n < 10:
                    append_as_follower(copy.log, found.read(), 0)
            last = copy.log.segments.active.find(9)
            assert last is not None
            files.crash(lambda _kind, count: count)
            files.flip_bit(copy.log.segments.active.path(), last[0] * 8 + 7 * 8 + 4)
            follower = Following(leader, tmp_path, files=files)
            assert follower.copy().log.end_offset == 26
            copy = follower.begin()
            async with follower.copying():
                await until(lambda: same(leader.partition(), copy))
                log = leader.partition().log
                for offset in range(30):
                    here, there = (each.read(offset, 1, up_to=30) for each in (copy.log, log))
                    assert here is not None
                    assert there is not None
                    assert here.read() == there.read()

    run(test)


@pytest.mark.parametrize("written", [1, 2, 20])
def test_what_is_behind_an_unverified_gap_is_copied_again(tmp_path: Path, written: int) -> None:
    """The leader's log ends at the gap, in it, or beyond the copy."""

    async def test() -> None:
        async with leading(tmp_path) as leader:
            theirs = leader.partition()
            leader.lead(0, 3)
            for number in range(written):
                leader.append(b"%d" % number)
            follower = Following(leader, tmp_path)
            log = follower.copy().log
            first = theirs.log.read(0, 1, up_to=1)
            assert first is not None
            append_as_follower(log, first.read(), 0)
            elsewhere = batch_of(b"1")
            assign(elsewhere, 9, theirs.leader_epoch)
            append_as_follower(log, elsewhere, 0)
            log.unverified_gaps = [1]
            copy = follower.begin()
            async with follower.copying():
                await until(lambda: same(theirs, copy))
                assert files_of(copy) == files_of(theirs)
                assert log.unverified_gaps == []

    run(test)


@pytest.mark.row("A148")
def test_a_batch_above_every_limit_is_fetched_completely(tmp_path: Path) -> None:
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
                follower.begin(index)
            async with follower.copying():
                for index in range(2):
                    theirs, copy = leader.partition(index), follower.copy(index)
                    await until(partial(same, theirs, copy))
                    assert files_of(copy) == files_of(theirs)

    run(test)


def test_a_follower_behind_the_leaders_log_start_restarts_there(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            log = leader.partition().log
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            first = log.read(0, 1, up_to=1)
            assert first is not None
            copy = follower.copy()
            append_as_follower(copy.log, first.read(), 0)
            for _ in range(4):
                leader.append(b"b")
            log.maybe_increment_log_start(3)
            leader.lead(0, 3)
            leader.append(b"c")
            follower.begin()
            async with follower.copying():
                await until(lambda: same(leader.partition(), copy))
                assert (copy.log.log_start_offset, copy.log.end_offset) == (3, 6)
                log.maybe_increment_log_start(5)
                leader.append(b"d")
                await until(lambda: copy.log.log_start_offset == 5)

    run(test)


def test_a_leader_that_does_not_know_its_epoch_yet_is_retried(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            copy = follower.begin(leader_epoch=4)
            async with follower.copying():
                await until(lambda: leader.services.fetch_sessions.partition_count == 1)
                assert copy.log.end_offset == 0
                leader.lead(0, 4)
                await until(lambda: same(leader.partition(), copy))

    run(test)


SLOW = ReplicationConfig(replica_fetch_backoff_ms=25_000, replica_fetch_wait_max_ms=25_000)
"""So long that a test that waits for either would fail."""


def test_a_partition_added_while_a_fetch_waits_is_fetched_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=3) as leader:
            follower = Following(leader, tmp_path, SLOW)
            copies = []
            async with follower.copying():
                for index in range(3):
                    leader.lead(index, 3)
                    leader.append(b"a", index=index)
                    copies.append(follower.begin(index))
                    await until(lambda: same(leader.partition(len(copies) - 1), copies[-1]))
                    await until(lambda: len(leader.services.waiters) == 1)  # nothing more to fetch

    run(test)


def test_a_leader_that_learns_late_of_its_leadership_is_retried_soon(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            leader.lead(0, 3)
            leader.lead(1, 3)
            leader.append(b"a", index=1)
            follower = Following(leader, tmp_path, SLOW)
            follower.begin(0)  # the partition is empty, so the fetch waits
            late = follower.begin(1, leader_epoch=4)
            async with follower.copying():
                (fetcher,) = follower.fetchers._by_leader.values()
                copied = fetcher._states[late.topic_partition]
                await until(lambda: copied.backoff_ms == 4 * FIRST_BACKOFF_MS)
                leader.lead(1, 4)
                await until(lambda: same(leader.partition(1), late))
                await until(lambda: copied.backoff_ms == 0)

    run(test)


def test_a_fenced_follower_waits_for_its_controller(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            for index in range(2):
                leader.lead(index, 3)
                leader.append(b"a", index=index)
            follower = Following(leader, tmp_path)
            fenced, other = follower.begin(0, leader_epoch=2), follower.begin(1)
            async with follower.copying():
                await until(lambda: same(leader.partition(1), other))
                (fetcher,) = follower.fetchers._by_leader.values()
                await until(lambda: fenced.topic_partition not in fetcher._states)
                assert fenced.log.end_offset == 0
                follower.begin(0, leader_epoch=3)
                await until(lambda: same(leader.partition(0), fenced))

    run(test)


def test_a_failed_directory_stops_only_its_own_replicas(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            files = FakeFiles()
            follower = Following(leader, Path("/data"), files=files, dirs=2)
            broken, other = follower.begin(0, 0), follower.begin(1, 0)
            assert broken.log.log_dir is not other.log.log_dir
            for index in range(2):
                leader.lead(index, 3)
                follower.begin(index)
            files.fail_next("append", errno.EIO)
            leader.append(b"a", index=0)
            async with follower.copying():
                await until(lambda: broken.log.log_dir.failure is not None)
                leader.append(b"b", index=1)
                await until(lambda: same(leader.partition(1), other))
                assert broken.log.end_offset == 0

    run(test)


def test_a_follower_copies_without_a_fetch_session(tmp_path: Path) -> None:
    async def test(slots: int) -> None:
        folder = tmp_path / str(slots)
        folder.mkdir()
        settings = {"max.incremental.fetch.session.cache.slots": str(slots)}
        async with leading(folder, settings=settings) as leader:
            leader.lead(0, 3)
            follower = Following(leader, folder)
            copy = follower.begin()
            async with follower.copying():
                for _ in range(3):
                    leader.append(b"a")
                    await until(lambda: same(leader.partition(), copy))
                    leader.services.fetch_sessions._sessions.clear()
                assert files_of(copy) == files_of(leader.partition())

    run(lambda: test(10))
    run(lambda: test(0))


def test_an_unreachable_leader_is_retried(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path) as leader:
            leader.lead(0, 3)
            leader.append(b"a")
            follower = Following(leader, tmp_path)
            follower.address = None
            copy = follower.begin()
            async with follower.copying():
                (fetcher,) = follower.fetchers._by_leader.values()
                await asyncio.sleep(0)
                follower.address = leader.address
                await until(lambda: same(leader.partition(), copy))
                fetcher.break_connection()
                leader.append(b"b")
                await until(lambda: same(leader.partition(), copy))

    run(test)


def test_a_silent_leader_gets_a_longer_timeout_after_each_failure(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = Address(*silent.getsockname())
            context = FollowingBroker(address, tmp_path).fetchers._context
            fetchers = Fetchers(context, lambda _: address, None, SetupTimeout(20, 50))
            for waited_ms in (20, 40, 50, 50):
                with pytest.raises(ConnectionFailed, match=f"within {waited_ms} ms"):
                    await fetchers._connect(0)

    run(test)


def test_a_stopped_partition_is_no_longer_fetched(tmp_path: Path) -> None:
    async def test() -> None:
        async with leading(tmp_path, partitions=2) as leader:
            follower = Following(leader, tmp_path)
            for index in range(2):
                leader.lead(index, 3)
                follower.begin(index)
            async with follower.copying():
                follower.fetchers.stop(TopicPartition(TOPIC, 0))
                leader.append(b"a", index=0)
                leader.append(b"b", index=1)
                await until(lambda: same(leader.partition(1), follower.copy(1)))
                assert follower.copy(0).log.end_offset == 0
                follower.fetchers.stop(TopicPartition(TOPIC, 1))
                await until(lambda: not follower.fetchers._by_leader)

    run(test)
