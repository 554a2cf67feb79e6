"""Runs the delay service: routes that come and go, and restarts after errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from penstock.client.cluster import Client
from penstock.errors import KafkaError
from penstock.retry.routes import find_routes, keep_records
from penstock.retry.service import DelayService
from penstock.retry.store.index import TimeIndex

LOOK_S: Final = 1.0
RETRY_S: Final = (0.1, 0.5, 1.0, 5.0)

log = logging.getLogger(__name__)


async def serve_delays(
    client: Client, index: TimeIndex, instance: str, on_ready: Callable[[], Awaitable[None]]
) -> None:
    """Until cancelled. After an error a new service finds out what was delivered."""
    failures = 0
    while True:
        try:
            await _serve(client, index, instance, on_ready)
        except* KafkaError as errors:
            wait_s = RETRY_S[min(failures, len(RETRY_S) - 1)]
            failures += 1
            log.warning("starting again in %g s: %s", wait_s, errors.exceptions[0])
        else:
            failures = 0
            continue
        client.forget()
        await asyncio.sleep(wait_s)


async def _serve(
    client: Client, index: TimeIndex, instance: str, on_ready: Callable[[], Awaitable[None]]
) -> None:
    routes = await find_routes(client)
    for topic in routes:
        await keep_records(client, topic)
    if not routes:
        await on_ready()
        await asyncio.sleep(LOOK_S)
        return
    async with (
        DelayService(client, index, routes, instance=instance) as service,
        asyncio.TaskGroup() as tasks,
    ):
        looking = tasks.create_task(_follow_routes(client, service))
        await on_ready()
        while service.routes:
            await service.step()
        looking.cancel()


async def _follow_routes(client: Client, service: DelayService) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        found = await find_routes(client)
        for topic in found.keys() - service.routes.keys():
            await keep_records(client, topic)
        service.route(found)
