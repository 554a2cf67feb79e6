"""The delay service on a thread, for tests whose broker runs in their own process."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.retry.serve import serve_delays
from penstock.retry.store.sqlite import SqliteIndex


@contextmanager
def delay_service(bootstrap: str, directory: Path) -> Iterator[None]:
    ready = threading.Event()
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def on_ready() -> None:
        ready.set()

    async def serving() -> None:
        index = SqliteIndex(directory / "index.sqlite")
        async with (
            Client(parse_addresses(bootstrap), client_id="delays") as client,
            asyncio.TaskGroup() as group,
        ):
            task = group.create_task(serve_delays(client, index, "test", on_ready))
            tasks.append((asyncio.get_running_loop(), task))
        await index.close()

    thread = threading.Thread(target=lambda: asyncio.run(serving()))
    thread.start()
    assert ready.wait(20)
    try:
        yield
    finally:
        loop, task = tasks[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
