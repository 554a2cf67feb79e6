"""The broker's end of the cleaning process."""

import asyncio
import logging
import sys
from asyncio import StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator

import msgspec

from penstock.log.compaction.job import Answer, CleanedGroup, CleaningJob, Died, Failed, Finished

_ANSWER_BYTES = 1 << 24
LEAST_PATIENCE_S = 60
SLOWEST_BYTES_PER_SECOND = 1 << 20
CLOSE_S = 5

logger = logging.getLogger(__name__)


def patience_s(job: CleaningJob) -> float:
    """Timeout of one answer: a job reads its segments twice and writes them once."""
    slowest = min(SLOWEST_BYTES_PER_SECOND, job.io_bytes_per_second)
    return LEAST_PATIENCE_S + 4 * job.size_bytes / slowest


class CleaningProcess:
    """The process is started with the first job and reused; it runs one job at a time.

    If the process dies, the answer is `Died`, and the next job starts another.
    """

    def __init__(self) -> None:
        self._process: Process | None = None

    async def clean(self, job: CleaningJob) -> AsyncGenerator[Answer]:
        """The answers as they come; the last one is no `CleanedGroup`."""
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        answer: Answer | None = None
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            await process.stdin.drain()
            while line := await self._line(process.stdout, patience_s(job)):
                answer = msgspec.json.decode(line, type=Answer)
                yield answer
                if not isinstance(answer, CleanedGroup):
                    return
            yield Died(await process.wait())
        except (BrokenPipeError, ConnectionResetError):
            yield Died(await process.wait())
        finally:
            if not isinstance(answer, Finished | Failed):
                self.kill()  # the caller has stopped listening: no answer may reach the next job
                await process.wait()

    async def _line(self, lines: StreamReader, patience: float) -> bytes:
        """The next answer. A process that does not answer in time is killed."""
        try:
            async with asyncio.timeout(patience):
                return await lines.readline()
        except TimeoutError:
            logger.error("the cleaning process did not answer for %d s; killing it", patience)
            self.kill()
            return b""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill it at once; what it has written so far is dropped."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def close(self) -> int | None:
        """Close its input, so that it ends as when the broker dies; returns its exit code."""
        if self._process is None:
            return None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                return await self._process.wait()
        except TimeoutError:
            self.kill()
            return await self._process.wait()

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "penstock.log.compaction.process",
                stdin=PIPE,
                stdout=PIPE,
                limit=_ANSWER_BYTES,
            )
        return self._process
