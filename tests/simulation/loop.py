"""An event loop whose time is a number, and whose order follows from a seed alone.

It is asyncio's own loop with two changes. It never waits: when no callback is ready, time jumps to
the next timer. And each callback belongs to a process, named in its context: the callbacks of a
paused process are held back until it resumes.
"""

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Process:
    """Everything that runs on one host until it dies. The process named "" is the world itself."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)


PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


class NumberedTask(asyncio.Task[T]):
    """A task with a fixed hash: the order of sets of tasks depends on hashes, usually addresses."""

    numbers = itertools.count()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._number = next(NumberedTask.numbers)
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class Deadlock(Exception):
    """Nothing is scheduled any more."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """`steps` counts the callbacks; `after_step` is called after each."""

    # Private to asyncio.BaseEventLoop, and unknown to typeshed.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        NumberedTask.numbers = itertools.count()
        self.now_s = 1_000.0
        self.steps = 0
        self.after_step: Callable[[], None] = lambda: None
        self.problems: list[str] = []
        self.set_task_factory(_numbered)
        self.world = Process("")

    def time(self) -> float:
        return self.now_s

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Until `main` has ended."""
        return self.run_until_complete(self.create_task(main, context=self.world.context.copy()))

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._ready.extend(process.held)
        process.held.clear()

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self.now_s):  # type: ignore[attr-defined]
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            if not timer.cancelled():
                ready.append(timer)
        if not ready:
            if not scheduled:
                raise Deadlock
            self.now_s = scheduled[0].when()
            return
        handle = ready.popleft()
        if handle.cancelled():
            return
        process = handle._context.get(PROCESS, self.world)  # type: ignore[attr-defined]
        if process.is_paused:
            process.held.append(handle)
            return
        self.steps += 1
        handle._run()
        self.after_step()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An exception in a callback is a bug, unless its process has died."""
        if PROCESS.get(self.world).is_alive:
            error = context.get("exception")
            self.problems.append(f"{context['message']}: {error!r}")

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: object) -> None: ...

    def _write_to_self(self) -> None: ...


def _numbered(
    loop: asyncio.AbstractEventLoop, coroutine: Any, context: Any = None, **kwargs: Any
) -> asyncio.Task[Any]:
    if context is None:
        return NumberedTask(coroutine, loop=loop, **kwargs)
    return NumberedTask(coroutine, loop=loop, context=context, **kwargs)
