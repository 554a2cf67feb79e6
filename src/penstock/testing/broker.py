"""A broker inside a test: in its own thread, in a temporary directory, on a free port.

    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

With pytest, use the fixture `broker`; see `penstock.testing.plugin`.

Records of delay and retry topics are delivered too: the delay service starts with the first such
topic.

`EmbeddedBroker(workers=2)` starts separate processes, as `penstock serve --workers 2` does, for
tests that depend on which broker leads a partition.
"""

import asyncio
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.broker.app import RunningBroker, new_event_loop, running
from penstock.broker.startup.state_file import BrokerState
from penstock.config.sources import resolve
from penstock.local.workers.temporary import temporary_workers
from penstock.testing.delays import deliver_delays
from penstock.testing.topics import make_topic

START_S = 30.0


class EmbeddedBroker:
    """Starts on entry and stops cleanly on exit; `settings` are broker settings by name.

    If the caller gives a `directory`, the data stays there for the next EmbeddedBroker that uses
    it.
    """

    def __init__(
        self,
        *,
        directory: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
        workers: int = 1,
    ) -> None:
        self._workers = workers
        self._state: BrokerState | None = None
        self._directory = None if directory is None else Path(directory)
        self._settings = dict(settings or {})
        self._stack = ExitStack()
        self._running: RunningBroker | None = None
        self._error: BaseException | None = None
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def bootstrap(self) -> str:
        """The broker's address, for `bootstrap.servers`."""
        return self.state.bootstrap

    @property
    def http(self) -> str | None:
        """host:port of `/metrics`, `/healthz` and `/readyz`."""
        return self.state.http

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; returns when it can be written. Omitted values are broker defaults."""
        make_topic(self.bootstrap, name, partitions, None, configs)

    @property
    def state(self) -> BrokerState:
        """The broker's process, addresses and workers, as in `broker.json`."""
        return self.running.state if self._state is None else self._state

    @property
    def running(self) -> RunningBroker:
        """The broker object in this process; not available with several workers."""
        assert self._state is None, "the workers are processes of their own"
        assert self._running is not None, "the broker has not been started"
        return self._running

    def __enter__(self) -> Self:
        if self._directory is None:
            self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        if self._workers > 1:
            try:
                self._state = self._stack.enter_context(
                    temporary_workers(self._directory, self._workers, self._settings)
                )
            except BaseException:
                self._stack.close()
                raise
            return self
        self._thread = threading.Thread(target=self._serve, name="penstock-broker", daemon=True)
        self._thread.start()
        assert self._ready.wait(START_S), "the broker did not start"
        if self._error is not None:
            self._stack.close()
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._state is not None:
            self._stack.close()
            return
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._stack.close()
        if self._error is not None:
            raise self._error

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._until_stopped())
        except BaseException as failure:  # noqa: BLE001  raised in the test's thread
            self._error = failure
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        assert self._directory is not None
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        resolved = resolve(
            defaults={
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dir": str((self._directory / "logs").absolute()),
            },
            pairs=[f"{name}={text}" for name, text in self._settings.items()],
            strict=True,
        )
        async with (
            running(resolved, self._directory) as self._running,
            asyncio.TaskGroup() as tasks,
        ):
            delays = tasks.create_task(
                deliver_delays(resolved.config, self._running, self._directory)
            )
            self._ready.set()
            await self._stop.wait()
            delays.cancel()


Broker = EmbeddedBroker
"""The name in version 0.1, kept for tests that use it."""
