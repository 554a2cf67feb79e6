"""Failures of the controller's operations: who learns of them, and what is logged."""

import asyncio
import logging
from contextlib import suppress

import pytest

from penstock.controller.epoch import NotController
from penstock.controller.operations import Operations
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.metadata.errors import NotConnected, SessionExpired


def carried_out(error: Exception, *, waited_for: bool = False) -> list[Exception]:
    """The failures reported to the owner after an operation that raises `error`."""
    reported: list[Exception] = []

    async def operation() -> None:
        raise error

    async def work() -> None:
        operations, done = Operations(reported.append), asyncio.Event()

        async def last() -> None:
            done.set()

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(operations.run())
            if waited_for:
                with suppress(type(error)):
                    await operations.submit(operation)
            else:
                operations.schedule(operation)
            operations.schedule(last)
            await done.wait()
            running.cancel()

    asyncio.run(work())
    return reported


@pytest.mark.parametrize(
    "error", [NotController("not here"), NotConnected("/"), SessionExpired("/")]
)
def test_expected_failures_are_reported_without_a_traceback(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert carried_out(error) == [error]
    assert carried_out(error, waited_for=True) == [error]
    assert [each for each in caplog.records if each.name.startswith("penstock")] == []


def test_an_unexpected_failure_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bug = KeyError("a bug")
    assert carried_out(bug) == [bug]
    (record,) = [each for each in caplog.records if each.name.startswith("penstock")]
    assert record.exc_info is not None
    assert record.exc_info[1] is bug


def test_a_bug_is_raised_only_in_the_waiting_caller(caplog: pytest.LogCaptureFixture) -> None:
    assert carried_out(KeyError("a bug"), waited_for=True) == []
    assert [each for each in caplog.records if each.name.startswith("penstock")] == []


def test_a_full_disk_under_the_store_refuses_the_operation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def operation() -> None:
        raise StorageError("metadata store: database or disk is full")

    async def work() -> None:
        operations = Operations(lambda _: None)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(operations.run())
            with pytest.raises(KafkaError, match="disk is full") as refused:
                await operations.submit(operation)
            assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            running.cancel()

    asyncio.run(work())
    (logged,) = caplog.records
    assert logged.exc_info is None
    assert "disk is full" in logged.message
