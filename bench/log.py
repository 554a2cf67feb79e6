"""Figures of the log: append, lookup, start-up, memory."""

import os
import random
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TypeVar

from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.loading import load_logs
from penstock.log.log_dir import LogDir
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.recovery import load_log
from penstock.log.store import LogStore
from penstock.log.time_search import offset_for_timestamp
from penstock.record.batch import read_header
from penstock.record.build import build_batch, numbered
from penstock.types import TopicPartition, Uuid

FILES = DiskFiles()
PARTITION = TopicPartition("bench", 0)
T = TypeVar("T")
GB = 1 << 30
ROUND = 10_000
NOW_MS = 1_700_000_000_000


def batch_of(size: int) -> bytearray:
    empty = len(build_batch(numbered([(None, b"")], NOW_MS)))
    return build_batch(numbered([(None, b"x" * (size - empty - 4))], NOW_MS))


def open_log(path: Path, config: TopicConfig, *, clean: bool) -> PartitionLog:
    path.mkdir(parents=True, exist_ok=True)
    return load_log(
        FILES,
        LogDir(FILES, path.parent),
        path,
        PARTITION,
        config,
        open_segments=OpenSegments(),
        recovery_point=0,
        log_start_offset=0,
        clean=clean,
        now_ms=NOW_MS,
    )


@contextmanager
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as path:
        yield Path(path)


def seconds(work: Callable[[T], object], on: T) -> float:
    start = time.perf_counter()
    work(on)
    return time.perf_counter() - start


def fill(log: PartitionLog, batch: bytearray, count: int) -> None:
    header = read_header(batch)
    for _ in range(count):
        log.append_as_leader(batch, header, 0, NOW_MS)


def bare_writes(path: Path, batch: bytearray, count: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(count):
        os.write(fd, batch)
    os.close(fd)


def append(size: int, count: int) -> None:
    batch = batch_of(size)
    bare_s, log_s = [], []
    with workspace() as path:
        for number in range(6):  # interleaved; the first round warms the page cache
            bare, here = path / f"bare{number}", path / f"log{number}" / "t-0"
            bare_s.append(seconds(lambda at: bare_writes(at, batch, count), bare))
            # Deleted before its pages are written back, which would slow down the log's round.
            bare.unlink()
            log = open_log(here, TopicConfig(), clean=True)
            log_s.append(seconds(lambda to: fill(to, batch, count), log))
            shutil.rmtree(here)
    bare_us, log_us = (median(rounds[1:]) / count * 1e6 for rounds in (bare_s, log_s))
    print(
        f"append {size} B: bare {bare_us:.2f} us, log {log_us:.2f} us, "
        f"{bare_us / log_us:.0%} of bare, {size / log_us:.0f} MB/s"
    )


def random_lookup() -> None:
    with workspace() as path:
        log = open_log(path / "t-0", TopicConfig(), clean=True)
        fill(log, batch_of(4096), GB // 4096 * 2)  # one closed segment and most of another
        end = log.end_offset
        offsets = random.Random(1).choices(range(end), k=ROUND)
        for what, asked in (("a random", offsets), ("the last", [end - 1] * ROUND)):
            rounds = [
                seconds(lambda at: [log.read(each, 1 << 20, up_to=end) for each in at], asked)
                for _ in range(7)
            ]
            print(
                f"lookup of {what} batch, 1 GB segments of 4 KB: first round "
                f"{rounds[0] / ROUND * 1e6:.1f} us, median {median(rounds) / ROUND * 1e6:.1f} us, "
                f"best {min(rounds) / ROUND * 1e6:.1f} us"
            )
        at_ms = seconds(lambda at: offset_for_timestamp(log, at), NOW_MS)
        print(f"lookup by timestamp: {at_ms * 1e6:.0f} us")


def crash_recovery() -> None:
    with workspace() as path:
        log = open_log(path / "t-0", TopicConfig(), clean=True)
        fill(log, batch_of(65_536), GB // 65_536)
        spent = seconds(lambda at: open_log(at, TopicConfig(), clean=False), path / "t-0")
        print(f"recovery of 1 GB in 64 KB batches: {spent:.2f} s")


def store(path: Path) -> LogStore:
    return LogStore(FILES, [path], lambda _topic: TopicConfig(), boot_id="bench")


def create_filled(into: LogStore, partitions: int, batch: bytearray, batches: int) -> None:
    """Creates partitions and spreads `batches` batches over them."""
    for number in range(partitions):
        log = into.create(TopicPartition("t", number), Uuid(bytes(15) + b"1"), NOW_MS)
        fill(log, batch, batches * (number + 1) // partitions - batches * number // partitions)


def crash_of_many(count: int = 2_000) -> None:
    """Start after a crash before any flush or checkpoint, and without the clean shutdown marker."""
    with workspace() as path:
        died = store(path)
        load_logs(died, NOW_MS)
        create_filled(died, count, batch_of(65_536), GB // 65_536)
        expected = sum(log.end_offset for log in died.logs.values())
        died.dirs[0].owner.release(broker_epoch=None)  # as the lock of a dead process
        again = store(path)
        opened = seconds(lambda at: load_logs(again, at), NOW_MS)
        found = sum(log.end_offset for log in again.logs.values())
        print(
            f"{count} partitions: opened after a crash with 1 GB unflushed in 64 KB batches in "
            f"{opened:.2f} s, {found} of {expected} batches found"
        )
        again.dirs[0].owner.release(broker_epoch=None)


def many_partitions(count: int = 2_000) -> None:
    with workspace() as path:
        first = store(path)
        load_logs(first, NOW_MS)
        created = seconds(lambda to: create_filled(to, count, batch_of(1_000), 20 * count), first)
        closed = seconds(LogStore.close, first)
        again = store(path)
        opened = seconds(lambda at: load_logs(again, at), NOW_MS)
        again.close()
        tracemalloc.start()
        idle = store(path)
        load_logs(idle, NOW_MS)
        each = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        print(
            f"{count} partitions: created and filled in {created:.2f} s, closed in {closed:.2f} s, "
            f"opened after a clean stop in {opened:.2f} s, {each / 1024:.1f} KB each when idle"
        )
        idle.close()


def main() -> None:
    many_partitions()
    crash_of_many()
    append(65_536, 2_000)
    append(1_000, 100_000)
    random_lookup()
    crash_recovery()


if __name__ == "__main__":
    main()
