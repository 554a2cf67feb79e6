"""The broker's end of the cleaning process."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator

import msgspec

from penstock.log.compaction.job import Answer, CleanedGroup, CleaningJob, Failed, Finished

_ANSWER_BYTES = 1 << 24


class CleaningProcess:
    """Started with the first job and kept for the next; one job at a time.

    A process that died is an answer like any other failure, and the next job starts another.
    """

    def __init__(self) -> None:
        self._process: Process | None = None

    async def clean(self, job: CleaningJob) -> AsyncGenerator[Answer]:
        """The answers as they come; the last one is `Finished` or `Failed`."""
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        answer: Answer | None = None
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            await process.stdin.drain()
            while line := await process.stdout.readline():
                answer = msgspec.json.decode(line, type=Answer)
                yield answer
                if not isinstance(answer, CleanedGroup):
                    return
            yield Failed(f"the cleaning process ended with {await process.wait()}")
        except (BrokenPipeError, ConnectionResetError):
            yield Failed(f"the cleaning process had ended with {await process.wait()}")
        finally:
            if not isinstance(answer, Finished | Failed) and process.returncode is None:
                process.kill()  # the caller has lost interest: no answer may reach the next job

    async def close(self) -> None:
        """End the process, whatever it is doing: what it has written so far is dropped."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

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
