"""Background jobs, for work that takes longer than a request; they report their progress."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from penstock.clock import Clock
from penstock.errors import ConfigError, KafkaError

KEPT: Final = 100
MOST: Final = 8

logger = logging.getLogger(__name__)


class Job(Struct):
    """`state` is waiting, running, done or failed; `message` is the result or the error."""

    id: int
    what: str
    user: str
    started_ms: int
    state: str = "waiting"
    done: int = 0
    total: int = 0
    message: str = ""
    ended_ms: int | None = None

    def at(self, done: int, total: int) -> None:
        self.done, self.total = done, total


class Jobs:
    """The last jobs, newest last. At most `MOST` run at a time; the others queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: asyncio.Queue[tuple[Job, Callable[[Job], Awaitable[str]]]] = asyncio.Queue()
        self.all: deque[Job] = deque(maxlen=KEPT)
        self._last = 0

    def start(self, what: str, user: str, work: Callable[[Job], Awaitable[str]]) -> Job:
        """Queue a job. `work` reports progress with `Job.at`; its result is a sentence."""
        self._last += 1
        job = Job(self._last, what, user, self._clock.now_ms())
        self.all.append(job)
        self._queue.put_nowait((job, work))
        return job

    async def run(self) -> None:
        """Run jobs until cancelled, which cancels them too."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(MOST):
                tasks.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            job, work = await self._queue.get()
            job.state = "running"
            try:
                job.message = await work(job)
                job.state = "done"
            except (ConfigError, KafkaError) as error:
                job.state, job.message = "failed", str(error)
            except Exception:
                logger.exception("job %d failed: %s", job.id, job.what)
                job.state, job.message = "failed", "an error of the console: see its log"
            job.ended_ms = self._clock.now_ms()
