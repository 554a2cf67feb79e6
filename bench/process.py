"""What a broker's processes cost, and where they run. Linux only: it reads /proc."""

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def family(pids: Iterable[int]) -> list[int]:
    """The processes and all their descendants."""
    found = list(pids)
    for pid in found:  # grows while it is walked
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of all threads so far, in user and kernel mode, ended children included."""
    ticks = 0
    for pid in family(pids):
        with suppress(OSError):
            # Behind the name, which may hold spaces: utime, stime, cutime, cstime.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS_PER_S


def disk_read_bytes(pids: Iterable[int]) -> int:
    """What had to be read from disks so far: not what the page cache had."""
    read = 0
    for pid in family(pids):
        with suppress(OSError):
            found = Path(f"/proc/{pid}/io").read_text().partition("\nread_bytes:")[2]
            read += int(found.split()[0])
    return read


def resident_mb(pids: Iterable[int]) -> float:
    pages = 0
    for pid in family(pids):
        with suppress(OSError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE_BYTES / 1e6


def threads(pids: Iterable[int]) -> Iterator[int]:
    for pid in family(pids):
        with suppress(OSError):
            yield from (int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())


@contextmanager
def pinned(pids: Iterable[int], broker: set[int], client: set[int]) -> Iterator[None]:
    """Keep every thread of the broker on its cores, and us with what we start on the client's."""
    pids, everywhere = list(pids), os.sched_getaffinity(0)
    _pin(threads(pids), broker)
    os.sched_setaffinity(0, client)
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)
        _pin(threads(pids), everywhere)


def _pin(ids: Iterable[int], cores: set[int]) -> None:
    for thread in ids:
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cores)


def touch_memory(size_bytes: int) -> None:
    """Have the host back so much free memory: a guest's first touch of a page is slow.

    What is freed here is what the page cache takes next.
    """
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE):
        pass
