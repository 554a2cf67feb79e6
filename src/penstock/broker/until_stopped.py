"""Runs a broker until it is asked to stop."""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

from penstock.broker.app import RunningBroker, running
from penstock.broker.machine import Machine
from penstock.broker.startup.banner import serving
from penstock.broker.startup.state_file import BrokerState
from penstock.config.sources import Resolved

logger = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0002
"""Shorter than Python's default, so that a thread that returns from an fsync releases the
interpreter sooner. With the default, a busy thread would cost the loop most of its throughput.
"""

Stop: TypeAlias = Callable[[str], None]
"""Stops the broker; the argument is the reason."""


async def until_stopped(
    resolved: Resolved,
    directory: Path,
    listen: Callable[[Stop], None],
    on_ready: Callable[[BrokerState], object],
    machine: Machine | None = None,
    *,
    alongside: Callable[[RunningBroker], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Run the broker until the function passed to `listen` is called; `listen` arranges for that
    call.

    `alongside` runs while the broker serves.
    """
    stop, is_ready = asyncio.Event(), False
    this = asyncio.current_task()
    assert this is not None

    def stopped(why: str) -> None:
        if stop.is_set():
            return  # a second signal must not cut the clean-up short
        logger.info("stopping: %s", why)
        stop.set()
        if not is_ready:
            this.cancel()  # start-up may be waiting for ZooKeeper

    listen(stopped)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        async with running(resolved, directory, machine) as broker:
            is_ready = True
            gc.collect()
            gc.freeze()  # start-up objects live on: exempt them from collections
            logger.info("%s", serving(broker.state))
            on_ready(broker.state)
            async with asyncio.TaskGroup() as tasks:
                other = None if alongside is None else tasks.create_task(alongside(broker))
                await stop.wait()
                if other is not None:
                    other.cancel()
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    logger.info("stopped")
