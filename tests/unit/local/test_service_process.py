"""A service beside the broker: its environment, its log, and that its end is not the broker's."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from penstock.config.broker import broker_config
from penstock.local.service_process import ServiceProcess, service_environment


def test_a_service_does_not_inherit_the_users_client_settings() -> None:
    environ = {
        "HOME": "/home/ada",
        "PENSTOCK_BOOTSTRAP": "production:9092",
        "PENSTOCK_CLIENT_ACKS": "0",
        "PENSTOCK_COMMAND_CONFIG": "client.properties",
        "PENSTOCK_PROFILE": "production",
    }
    assert service_environment(environ, {"PENSTOCK_REST_TOKEN": "t"}) == {
        "HOME": "/home/ada",
        "PENSTOCK_PROFILE": "",
        "PENSTOCK_REST_TOKEN": "t",
    }


def test_a_service_that_cannot_be_started_leaves_the_broker_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")

    async def run_for_a_while() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ServiceProcess("delay", broker_config({})).run([])

    asyncio.run(run_for_a_while())
    assert "the delay service cannot be started: No such file or directory" in caplog.text


def test_the_output_of_a_service_is_in_the_brokers_log_with_its_level(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    failing = tmp_path / "python"
    failing.write_text(
        "#!/bin/sh\n"
        "echo '[2026-01-01 00:00:00,000] INFO starting (penstock)' >&2\n"
        "head -c 2000000 /dev/zero | tr '\\0' x >&2; echo >&2\n"
        "echo 'penstock: --listen: cannot listen' >&2\n"
    )
    failing.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(failing))
    caplog.set_level(logging.INFO)

    async def run_until_told() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(ServiceProcess("rest", broker_config({})).run([]))
            while "cannot listen" not in caplog.text:
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(run_until_told())
    said = {each.getMessage(): each.levelname for each in caplog.records}
    assert said["rest: starting (penstock)"] == "INFO"
    assert said["rest: penstock: --listen: cannot listen"] == "ERROR"


def test_a_service_that_has_just_ended_causes_no_error_when_the_broker_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended:
        pid = 1

        def __init__(self) -> None:
            self.waits = 0
            self.stderr = asyncio.StreamReader()
            self.stderr.feed_eof()

        async def wait(self) -> int:
            self.waits += 1
            if self.waits == 1:
                await asyncio.sleep(60)
            return 0

        def terminate(self) -> None:
            raise ProcessLookupError

    async def ended(*_: object, **__: object) -> Ended:
        return Ended()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", ended)

    async def stopped() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ServiceProcess("delay", broker_config({})).run([])

    asyncio.run(stopped())
