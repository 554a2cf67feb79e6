"""A schema registry inside a test: in its own thread, on a free port.

    with EmbeddedRegistry(broker.bootstrap) as registry:
        client = SchemaRegistryClient({"url": registry.url})

With pytest, use the fixture `registry`; see `penstock.testing.plugin`.
"""

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.http.access import HttpAccess
from penstock.registry.rest import RegistrySettings, RunningRegistry, running_registry

START_S = 30.0
READY_S = 0.01


class EmbeddedRegistry:
    """Starts on entry, with any cluster; it stores its schemas there, in the topic `_schemas`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        users: Path | None = None,
        read_only: bool = False,
        port: int = 0,
    ) -> None:
        self.bootstrap = bootstrap
        self._users, self._read_only, self._port = users, read_only, port
        self._running: RunningRegistry | None = None
        self._error: BaseException | None = None
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._serve, name="penstock-registry", daemon=True)

    @property
    def url(self) -> str:
        """The registry's address, for `schema.registry.url`."""
        assert self._running is not None, "the registry has not been started"
        return "http://{}:{}".format(*self._running.address)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(START_S), "the registry did not start"
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _serve(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        except BaseException as failure:  # noqa: BLE001  raised in the test's thread
            self._error = failure
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        access = HttpAccess(self._users, read_only=self._read_only)
        settings = RegistrySettings(host="127.0.0.1", port=self._port, access=access)
        async with (
            Client(parse_addresses(self.bootstrap), client_id="penstock-registry") as client,
            running_registry(client, settings) as self._running,
        ):
            while not self._running.service.is_ready:
                await asyncio.sleep(READY_S)
            self._ready.set()
            await self._stop.wait()
