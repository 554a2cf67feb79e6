"""A service beside the broker: a separate process, which is restarted when it dies."""

import asyncio
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from penstock.broker.startup.state_file import BrokerState
from penstock.clock import SystemClock
from penstock.config.broker import BrokerConfig
from penstock.config.listener import SecurityProtocol
from penstock.local.restarts import restart

STOP_S: Final = 5.0
LONGEST_LINE_BYTES: Final = 1 << 20
HEAD: Final = re.compile(r"\[[^]]*\] ([A-Z]+) ")
"""The beginning of a log line, see `cli.logging`."""
OF_USERS: Final = ("PENSTOCK_BOOTSTRAP", "PENSTOCK_CLIENT_", "PENSTOCK_COMMAND_CONFIG")

logger = logging.getLogger(__name__)


def services_address(config: BrokerConfig, state: BrokerState) -> str | None:
    """The address of a PLAINTEXT listener, if there is one."""
    for each in config.listener.endpoints():
        if each.protocol is SecurityProtocol.PLAINTEXT and each.listener in state.listeners:
            return state.listeners[each.listener]
    return None


def service_environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The environment without the client settings and profile of the user who started the broker:
    they are for other clusters, and could weaken acks or break connections here.
    """
    kept = {name: text for name, text in environ.items() if not name.startswith(OF_USERS)}
    return {**kept, "PENSTOCK_PROFILE": "", **own}


def of_log(line: str) -> tuple[int, str]:
    """The level and text of a service's log line. Lines in another format are errors: a sentence,
    or part of a traceback.
    """
    head = HEAD.match(line)
    if head is None:
        return logging.ERROR, line
    return logging.getLevelNamesMapping().get(head[1], logging.ERROR), line[head.end() :]


class ServiceProcess:
    """A penstock command, run as a client of the broker beside it; by default `NAME serve`."""

    def __init__(
        self, name: str, config: BrokerConfig, command: tuple[str, ...] | None = None
    ) -> None:
        self._name, self._config = name, config
        self._command = command or (name, "serve")

    def connection(self, state: BrokerState) -> list[str] | None:
        """The connection options of the service; None if it cannot connect."""
        file = self._config.services.client_file()
        if file is not None:
            return ["--bootstrap-server", state.bootstrap, "--command-config", str(file)]
        address = services_address(self._config, state)
        return None if address is None else ["--bootstrap-server", address]

    async def run(
        self, options: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Run and restart the process until cancelled, which ends it."""
        variables = service_environment(os.environ, environment or {})
        clock, deaths = SystemClock(), 0
        while True:
            started_ms = clock.monotonic_ms()
            try:
                await self._run(options, variables)
            except OSError as error:  # no memory, or too many processes: the broker continues
                logger.error("the %s service cannot be started: %s", self._name, error.strerror)
            again = restart(clock.monotonic_ms() - started_ms, deaths)
            deaths = again.quick_deaths
            logger.warning(
                "the %s service ended; it starts again in %d ms", self._name, again.delay_ms
            )
            await asyncio.sleep(again.delay_ms / 1000)

    async def _run(self, options: Sequence[str], variables: Mapping[str, str]) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "penstock",
            *(*self._command, *options, "--parent", str(os.getpid())),
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
        )
        logger.info("%s service started as process %d", self._name, process.pid)
        assert process.stderr is not None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._relay(process.stderr))
            await self._ended(process)

    async def _relay(self, lines: asyncio.StreamReader) -> None:
        """Copy the service's log into the broker's, which is rotated and has levels."""
        while True:
            try:
                line = await lines.readline()
            except ValueError:  # the line is too long
                continue
            if not line:
                return
            level, text = of_log(line.decode(errors="replace").rstrip())
            logger.log(level, "%s: %s", self._name, text)

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        """Wait for the process to end; when cancelled, end it."""
        try:
            await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):  # it has just ended by itself
                process.terminate()
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            raise
