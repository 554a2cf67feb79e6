"""Runs a loop that must not block, and suspends a ZooKeeper's process."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from peers.process import wait_until

T = TypeVar("T")

WAIT_S = 5
TICK_S = 0.01
LONGEST_TURN_S = 0.5
"""A blocking call to ZooKeeper would take seconds."""
THREADS = Path("/proc/self/task")


class WaitedForCpu:
    """How long threads of this process were ready to run while others had the cores.

    All threads count: the loop may wait for one that holds the GIL and has no core.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._total_ns = 0

    def seconds(self) -> float:
        for thread in THREADS.glob("*/schedstat"):
            with suppress(OSError):  # the thread has just ended
                waited_ns = int(thread.read_text().split()[1])
                self._total_ns += waited_ns - self._seen.get(thread.parent.name, 0)
                self._seen[thread.parent.name] = waited_ns
        return self._total_ns / 1e9


def run_unblocked(scenario: Callable[[], Awaitable[T]]) -> T:
    """Runs the scenario; fails if the loop was ever blocked, or if an error reached the loop's
    handler.
    """
    errors: list[dict[str, Any]] = []
    longest = 0.0

    async def watched() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        waited = WaitedForCpu()
        last = loop.time() - waited.seconds()

        def tick() -> None:
            nonlocal last, longest
            now = loop.time() - waited.seconds()
            longest, last = max(longest, now - last), now
            loop.call_later(TICK_S, tick)

        tick()
        return await scenario()

    result = asyncio.run(watched())
    assert errors == []
    assert longest < LONGEST_TURN_S, f"the loop stood still for {longest:.3f} s"
    return result


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Suspends the process: its connections stay open, and nothing is answered."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _stands_still(pid), WAIT_S, f"{pid} to stand still")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    """Whether every thread has stopped: those on another core run on for a moment after the
    signal.
    """
    try:
        stats = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    except FileNotFoundError:
        return False  # a thread has just ended
    return all(each.rpartition(")")[2].split()[0] in "Tt" for each in stats)
