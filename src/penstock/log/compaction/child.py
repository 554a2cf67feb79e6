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
    """How long an answer may take: a job reads its segments twice and writes them once."""
    slowest = min(SLOWEST_BYTES_PER_SECOND, job.io_bytes_per_second)
    return LEAST_PATIENCE_S + 4 * job.size_bytes / slowest


class CleaningProcess:
    """Started with the first job and kept for the next; one job at a time.

    That it died is an answer as well, and the next job starts another.
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
                self.kill()  # the caller has lost interest: no answer may reach the next job
                await process.wait()

    async def _line(self, lines: StreamReader, patience: float) -> bytes:
        """The next answer; none from a process that does not get on: it is ended."""
        try:
            async with asyncio.timeout(patience):
                return await lines.readline()
        except TimeoutError:
            logger.error("the cleaning process said nothing for %d s; it is ended", patience)
            self.kill()
            return b""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Whatever it is doing: what it has written so far is dropped."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def close(self) -> int | None:
        """Let it end as it does when the broker dies: its input closes. Its exit code."""
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
                "-m",
                "penstock.log.compaction.process",
                stdin=PIPE,
                stdout=PIPE,
                limit=_ANSWER_BYTES,
            )
        return self._process
