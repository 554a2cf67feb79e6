"""CPU, memory and disk reads of a broker's processes, and their cores. Linux only: reads /proc."""

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
    for pid in found:  # the list grows in the loop
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of all threads so far, in user and kernel mode, including ended children."""
    ticks = 0
    for pid in family(pids):
        with suppress(OSError):
            # After the name, which may contain spaces: utime, stime, cutime, cstime.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS_PER_S


def disk_read_bytes(pids: Iterable[int]) -> int:
    """Bytes read from disks so far, without those that the page cache had."""
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
    """Keeps the broker's threads on its cores, and this thread and its children on the client's."""
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
    """Makes the host back this much free memory: a guest's first touch of a page is slow.

    The page cache takes the freed memory next.
    """
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE):
        pass
