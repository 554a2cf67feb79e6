"""A broker stops once, however many signals it gets."""

import asyncio
import logging
from pathlib import Path

import pytest

from penstock.broker.startup.state_file import BrokerState
from penstock.broker.until_stopped import Stop, until_stopped
from penstock.config.sources import resolve


@pytest.mark.parametrize("when", ["as it starts", "when it is ready"])
def test_a_second_signal_is_ignored(
    when: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would cancel the clean-up of a broker that is not ready yet."""
    caplog.set_level(logging.INFO)
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dir": str(tmp_path / "logs")}
    stops: list[Stop] = []

    def listen(stop: Stop) -> None:
        stops.append(stop)
        if when == "as it starts":
            tell_twice()

    def on_ready(_: BrokerState) -> None:
        tell_twice()

    def tell_twice() -> None:
        for why in ("first", "second"):
            stops[0](why)

    asyncio.run(until_stopped(resolve(defaults=settings), tmp_path, listen, on_ready))
    reported = [each.getMessage() for each in caplog.records if "stop" in each.getMessage()]
    assert reported == ["stopping: first", "stopped"]
