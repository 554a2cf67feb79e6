"""A failed log directory is reported while the broker runs, and does not block its shutdown."""

import asyncio
from pathlib import Path

import pytest

from penstock.broker.peers import failed_directories
from penstock.broker.peers.failed_directories import FailedDirectories
from penstock.errors import StorageError
from penstock.metadata.errors import NotConnected


def test_a_report_that_the_store_refuses_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full disk fails both the store and the directory."""
    monkeypatch.setattr(failed_directories, "RETRY_S", 0.0)
    failures: list[Exception] = [NotConnected("/"), StorageError("database or disk is full")]
    written = 0

    async def write() -> None:
        nonlocal written
        if failures:
            raise failures.pop()
        written += 1

    async def scenario() -> None:
        async with asyncio.TaskGroup() as tasks:
            FailedDirectories(tasks, write).report(Path("logs"))

    asyncio.run(scenario())
    assert written == 1


def test_a_broker_stops_while_the_store_is_unreachable() -> None:
    attempts = 0

    async def write() -> None:
        nonlocal attempts
        attempts += 1
        raise NotConnected("/")

    async def scenario() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            directories = FailedDirectories(tasks, write)
            directories.report(Path("logs"))
            await asyncio.sleep(0)
            directories.close()
            directories.report(Path("more-logs"))

    asyncio.run(scenario())
    assert attempts == 1
