"""Moving a partition to another log directory of its broker."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest

from penstock.config.topic import TopicConfig
from penstock.config.value import LONG_MAX
from penstock.log.flush import Flusher
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogDirNotFound
from penstock.replication import log_dir_moves
from penstock.replication.errors import UnknownPartition
from penstock.replication.log_dir_moves import LogDirMoves, TopicNameTooLong
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.testing.logs import PARTITION, ROOT, TOPIC_ID, LogRig, batch_of
from penstock.types import BrokerId, TopicPartition

HERE, THERE = ROOT / "d0", ROOT / "d1"


class Steady:
    """A clock that the test advances."""

    monotonic = 0

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return self.monotonic


class Mover:
    """A broker's partitions over a fake disk, with moves that run during a test's work."""

    def __init__(self, rig: LogRig) -> None:
        self.rig, self.replaced, self.clock = rig, list[PartitionLog](), Steady()
        self.partitions = Partitions(BrokerId(0), rig.store)
        self.partition: Partition = self.partitions.create(*PARTITION, TOPIC_ID, 0)
        self.partition.lead(1, (0,))

    def run(self, work: Callable[[LogDirMoves], Awaitable[None]], rate: int = LONG_MAX) -> None:
        async def running() -> None:
            loop = asyncio.get_running_loop()
            flusher = Flusher(loop.call_soon_threadsafe)
            moves = LogDirMoves(
                self.partitions, flusher, self.clock, self.replaced.append, lambda: rate
            )
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(moves.run())
                await work(moves)
                task.cancel()
            flusher.close()

        asyncio.run(running())

    async def arrived(self) -> None:
        async with asyncio.timeout(10):
            while self.rig.store.future_logs:
                await asyncio.sleep(0)


def test_a_partition_is_served_from_its_new_directory() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    for number in range(50):
        rig.append(batch_of(b"%d" % number))
    mover = Mover(rig)
    old = mover.partition.log

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        assert rig.store.future_logs[PARTITION].log_dir.path == THERE
        rig.append(batch_of(b"while it moves"), leader_epoch=1)
        await mover.arrived()

    mover.run(work)
    assert mover.partition.log is rig.log
    assert rig.log.path == THERE / "orders-0"
    assert len(rig.read_all()) == 51
    assert rig.log.high_watermark == old.high_watermark
    assert rig.log.epochs.latest == 1
    assert mover.replaced == [old]
    rig.crash()
    assert len(rig.read_all()) == 51


def test_a_gap_that_is_not_verified_yet_moves_too() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    for number in range(3):
        rig.append(batch_of(b"%d" % number))
    mover = Mover(rig)
    mover.partition.follow(1, 2, (0, 1))
    rig.log.unverified_gaps = [1]

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await mover.arrived()

    mover.run(work)
    assert rig.log.path == THERE / "orders-0"
    assert (rig.log.unverified_gaps, rig.log.recovery_point) == ([1], 1)


def test_a_move_interrupted_by_a_restart_is_finished() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"x"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=THERE, future=True)
    rig.restart()
    mover = Mover(rig)

    async def work(_: LogDirMoves) -> None:
        await mover.arrived()

    mover.run(work)
    assert rig.log.path == THERE / "orders-0"


def test_a_move_ends_while_records_arrive_faster_than_the_disk_syncs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"first"))
    mover, request = Mover(rig), Flusher.request

    def busy_request(flusher: Flusher, log: PartitionLog) -> Future[int]:
        flushed = request(flusher, log)
        rig.append(batch_of(b"while it is synced"), leader_epoch=1)
        return flushed

    monkeypatch.setattr(Flusher, "request", busy_request)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await mover.arrived()

    mover.run(work)
    left = rig.read_all()
    assert len(left) == rig.log.end_offset > 1
    rig.crash()
    assert rig.read_all() == left


def test_a_copy_that_catches_up_late_is_synced_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it was synced before: a throttled copy may take minutes for a burst."""
    monkeypatch.setattr(log_dir_moves, "MOST_ON_LOOP_BYTES", 10_000)
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"first"))
    mover, request = Mover(rig), Flusher.request
    sizes = iter([20_000] * 5)
    requests = 0

    def busy_request(flusher: Flusher, log: PartitionLog) -> Future[int]:
        nonlocal requests
        requests += 1
        flushed = request(flusher, log)
        rig.append(batch_of(bytes(next(sizes, 1))), leader_epoch=1)
        return flushed

    monkeypatch.setattr(Flusher, "request", busy_request)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await mover.arrived()

    mover.run(work)
    assert requests == 6


def test_a_move_interrupted_by_a_restart_waits_for_its_partition() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    other = TopicPartition("orders", 1)
    rig.store.create(other, TOPIC_ID, 0, path=HERE)
    rig.store.create(other, TOPIC_ID, 0, path=THERE, future=True)
    mover = Mover(rig)

    async def work(_: LogDirMoves) -> None:
        await asyncio.sleep(0)
        mover.partitions.create(*other, TOPIC_ID, 0)
        await mover.arrived()

    mover.run(work)
    assert rig.store.logs[other].path == THERE / "orders-1"


def test_moves_respect_the_rate_limit() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    for _ in range(5):
        rig.append(batch_of(bytes(1 << 19)))
    mover = Mover(rig)

    async def copied(size_bytes: int) -> None:
        async with asyncio.timeout(10):
            while rig.store.future_logs[PARTITION].size_bytes < size_bytes:
                await asyncio.sleep(0)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await copied(1 << 19)
        first = rig.store.future_logs[PARTITION].size_bytes
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert rig.store.future_logs[PARTITION].size_bytes == first
        mover.clock.monotonic += 1_100  # a partial batch that was read with it counts too
        await copied(first + 1)
        async with asyncio.timeout(10):
            while rig.store.future_logs:
                mover.clock.monotonic += 1_100
                await asyncio.sleep(0)

    mover.run(work, rate=1_000_000)
    assert len(rig.read_all()) == 5


def test_moving_back_to_the_current_directory_cancels_a_move() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    mover = Mover(rig)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        moves.start(PARTITION, HERE)
        assert rig.store.future_logs == {}

    mover.run(work)
    assert rig.log.path == HERE / "orders-0"


def test_a_copy_starts_at_the_log_start_offset() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    for value in (b"a", b"b", b"c"):
        rig.append(batch_of(value))
    mover = Mover(rig)
    rig.log.maybe_increment_log_start(2)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await mover.arrived()

    mover.run(work)
    assert (rig.log.log_start_offset, rig.log.end_offset) == (2, 3)


@pytest.mark.parametrize("start", [1, 15, 19])
def test_a_log_that_begins_within_a_batch_is_moved(start: int) -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(*[b"%d" % number for number in range(20)]))
    rig.append(batch_of(b"20"))
    mover = Mover(rig)
    rig.log.maybe_increment_log_start(start)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        await mover.arrived()

    mover.run(work)
    left = [(offset, b"%d" % offset) for offset in range(start, 21)]
    assert rig.log.path == THERE / "orders-0"
    assert (rig.log.log_start_offset, rig.log.high_watermark, rig.log.end_offset) == (start, 21, 21)
    assert rig.read_all() == left
    rig.crash()
    assert rig.read_all() == left


def test_a_log_that_cannot_be_copied_does_not_block_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"damaged"))
    path = rig.log.segments.active.path()
    other = TopicPartition("orders", 1)
    rig.store.create(other, TOPIC_ID, 0, path=HERE)
    mover = Mover(rig)
    mover.partitions.create(*other, TOPIC_ID, 0)

    async def work(moves: LogDirMoves) -> None:
        rig.fake.flip_bit(path, 64 * 8)
        moves.start(PARTITION, THERE)
        moves.start(other, THERE)
        await mover.arrived()

    mover.run(work)
    assert rig.log.path == HERE / "orders-0"
    assert rig.store.logs[other].path == THERE / "orders-1"
    assert "orders-0 cannot be moved" in caplog.text
    assert len(rig.store.deleted) == 2, "the moved log, and the copy that was given up"


def test_settings_altered_during_a_move_apply_after_it() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"x"))
    mover = Mover(rig)
    kept = replace(TopicConfig(), retention_ms=-1, max_message_bytes=77)

    async def work(moves: LogDirMoves) -> None:
        moves.start(PARTITION, THERE)
        mover.partition.configure(kept)
        await mover.arrived()

    mover.run(work)
    assert rig.log.path == THERE / "orders-0"
    assert rig.log.config == kept
    assert mover.partition.rules.max_message_bytes == 77


def test_unknown_directories_and_partitions_are_rejected() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    mover = Mover(rig)

    async def work(moves: LogDirMoves) -> None:
        with pytest.raises(LogDirNotFound):
            moves.start(PARTITION, ROOT / "d2")
        with pytest.raises(UnknownPartition):
            moves.start(TopicPartition("orders", 9), THERE)

    mover.run(work)


def test_a_topic_whose_name_is_too_long_for_a_copy_is_not_moved() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    mover = Mover(rig)
    longest, longer = (TopicPartition("x" * length, 0) for length in (213, 214))

    async def work(moves: LogDirMoves) -> None:
        for each in (longest, longer):
            mover.partitions.create(*each, TOPIC_ID, 0)
        moves.start(longest, rig.store.logs[longer].log_dir.path)
        with pytest.raises(TopicNameTooLong):
            moves.start(longer, rig.store.logs[longest].log_dir.path)

    mover.run(work)
    rig.restart()
    assert rig.store.future_logs.keys() <= {longest}
    assert rig.store.logs.keys() == {PARTITION, longest, longer}
