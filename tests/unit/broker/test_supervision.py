"""Background loops start again, and say why: in a line if that was to be expected."""

import asyncio

import pytest

from penstock.broker.peers import supervision
from penstock.controller.epoch import NotController
from penstock.metadata.errors import ConnectionLost


def logged(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> list[tuple[str, str, bool]]:
    """Level, text and whether there is a traceback, of a loop that fails once."""
    monkeypatch.setattr(supervision, "RESTART_S", 0)
    caplog.set_level("DEBUG", logger="penstock")
    errors = [error]

    async def run() -> None:
        if errors:
            raise errors.pop()
        raise asyncio.CancelledError

    async def work() -> None:
        with pytest.raises(asyncio.CancelledError):
            await supervision.supervised("a loop", run)

    asyncio.run(work())
    return [
        (each.levelname, each.getMessage(), bool(each.exc_info))
        for each in caplog.records
        if each.name.startswith("penstock")
    ]


@pytest.mark.parametrize("error", [NotController("not here"), ConnectionLost("/brokers")])
def test_what_was_to_be_expected_is_one_quiet_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"background loop 'a loop' starts again: {error}"
    assert logged(error, monkeypatch, caplog) == [("INFO", text, False)]


def test_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = "background loop 'a loop' failed and starts again"
    assert logged(KeyError("a bug"), monkeypatch, caplog) == [("ERROR", text, True)]
