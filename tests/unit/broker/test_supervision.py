"""Background loops restart after an error and log it: in one line if it was expected."""

import asyncio

import pytest

from penstock.broker.peers import supervision
from penstock.controller.epoch import NotController
from penstock.metadata.errors import ConnectionLost


def logged(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> list[tuple[str, str, bool]]:
    """Level, text and presence of a traceback in the log of a loop that fails once."""
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
def test_an_expected_error_is_one_info_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"background loop 'a loop' starts again: {error}"
    assert logged(error, monkeypatch, caplog) == [("INFO", text, False)]


def test_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = "background loop 'a loop' failed and starts again"
    assert logged(KeyError("a bug"), monkeypatch, caplog) == [("ERROR", text, True)]
