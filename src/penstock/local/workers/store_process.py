"""The process that owns the metadata store, and serves the machine's HTTP pages."""

import asyncio
import logging
import random
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from penstock.broker.app import new_event_loop
from penstock.clock import SystemClock
from penstock.http.server import serving
from penstock.local.workers.child import Channel, ProcessReport
from penstock.local.workers.pages import pages
from penstock.metadata.shared.server import StoreServer
from penstock.metadata.tree import Tree

logger = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""How long to wait for workers that are still stopping: a service manager sends SIGTERM to all
processes at once, and without a supervisor the workers end by themselves.
"""


class StoreProcess(Struct, frozen=True):
    """The files and sockets of the process; on ZooKeeper, only those of the pages."""

    directory: Path
    file: Path | None
    sock: socket.socket | None
    http: socket.socket | None


def run_store(process: StoreProcess, channel: Channel) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(process, channel))


async def _serve(process: StoreProcess, channel: Channel) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def supervisor_gone() -> None:
        loop.remove_reader(channel.life)
        logger.info("stopping: the supervisor is gone")
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(channel.life, supervisor_gone)
    with ExitStack() as closing:
        server = closing.enter_context(_store(loop, process))
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            if process.http is not None:
                table = pages(process.directory)
                await stack.enter_async_context(serving(tasks, table, sock=process.http))
            channel.send(ProcessReport())
            await stop.wait()
            await stack.aclose()
        if server is not None:
            await server.until_unused(PATIENCE_S)


@contextmanager
def _store(loop: asyncio.AbstractEventLoop, process: StoreProcess) -> Iterator[StoreServer | None]:
    if process.file is None or process.sock is None:
        yield None
        return
    clock = SystemClock()
    tree = Tree.open(process.file, clock, keep_sessions=True)
    try:
        server = StoreServer(loop, tree, clock, random.SystemRandom())
        server.listen(process.sock)
        yield server
        server.close()
    finally:
        tree.close()
