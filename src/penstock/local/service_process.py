"""A service beside the broker: a process of its own, which is started again when it dies."""

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
"""How a line of a log begins, see `cli.logging`."""
OF_USERS: Final = ("PENSTOCK_BOOTSTRAP", "PENSTOCK_CLIENT_", "PENSTOCK_COMMAND_CONFIG")

logger = logging.getLogger(__name__)


def services_address(config: BrokerConfig, state: BrokerState) -> str | None:
    """A PLAINTEXT listener, if there is one."""
    for each in config.listener.endpoints():
        if each.protocol is SecurityProtocol.PLAINTEXT and each.listener in state.listeners:
            return state.listeners[each.listener]
    return None


def service_environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Without the client settings and the profile of whoever started the broker: those are for
    other clusters, and here they could weaken acks or fail every connection.
    """
    kept = {name: text for name, text in environ.items() if not name.startswith(OF_USERS)}
    return {**kept, "PENSTOCK_PROFILE": "", **own}


def of_log(line: str) -> tuple[int, str]:
    """The level and the text of a line of a service's log. Others are failures: a sentence, or a
    part of a traceback.
    """
    head = HEAD.match(line)
    if head is None:
        return logging.ERROR, line
    return logging.getLevelNamesMapping().get(head[1], logging.ERROR), line[head.end() :]


class ServiceProcess:
    """A command of penstock, as a client of the broker beside it; `NAME serve` unless given."""

    def __init__(
        self, name: str, config: BrokerConfig, command: tuple[str, ...] | None = None
    ) -> None:
        self._name, self._config = name, config
        self._command = command or (name, "serve")

    def connection(self, state: BrokerState) -> list[str] | None:
        """The options by which the service connects; None: it cannot."""
        file = self._config.services.client_file()
        if file is not None:
            return ["--bootstrap-server", state.bootstrap, "--command-config", str(file)]
        address = services_address(self._config, state)
        return None if address is None else ["--bootstrap-server", address]

    async def run(
        self, options: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Until cancelled, which ends the process."""
        variables = service_environment(os.environ, environment or {})
        clock, deaths = SystemClock(), 0
        while True:
            started_ms = clock.monotonic_ms()
            try:
                await self._run(options, variables)
            except OSError as error:  # no memory, or too many processes: the broker goes on
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
        """Its log becomes part of the broker's, which is rotated and has levels."""
        while True:
            try:
                line = await lines.readline()
            except ValueError:  # it is too long
                continue
            if not line:
                return
            level, text = of_log(line.decode(errors="replace").rstrip())
            logger.log(level, "%s: %s", self._name, text)

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        """Waits for its end; when cancelled, ends it."""
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
