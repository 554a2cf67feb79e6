"""What a controller's operations say when they fail: as much as there is to know."""

import asyncio
import logging
from contextlib import suppress

import pytest

from penstock.controller.operations import Operations
from penstock.controller.term import NotController
from penstock.metadata.refusal import NotConnected, SessionExpired


def carried_out(error: Exception, *, waited_for: bool = False) -> list[Exception]:
    """What the owner hears of an operation that ends so."""
    heard: list[Exception] = []

    async def operation() -> None:
        raise error

    async def work() -> None:
        operations, done = Operations(heard.append), asyncio.Event()

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
    return heard


@pytest.mark.parametrize(
    "error", [NotController("not here"), NotConnected("/"), SessionExpired("/")]
)
def test_who_is_out_of_office_says_so_to_its_owner_alone(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert carried_out(error) == [error]
    assert carried_out(error, waited_for=True) == [error]
    assert [each for each in caplog.records if each.name.startswith("penstock")] == []


def test_an_operation_that_should_not_fail_keeps_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bug = KeyError("a bug")
    assert carried_out(bug) == [bug]
    (record,) = [each for each in caplog.records if each.name.startswith("penstock")]
    assert record.exc_info is not None
    assert record.exc_info[1] is bug


def test_who_waits_hears_of_the_bug_and_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    assert carried_out(KeyError("a bug"), waited_for=True) == []
    assert [each for each in caplog.records if each.name.startswith("penstock")] == []
