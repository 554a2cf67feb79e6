"""Runs the delay service: routes that come and go, and restarts after errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final, TypeAlias

from penstock.client.cluster import Client
from penstock.config.delay_route import Route
from penstock.errors import KafkaError
from penstock.retry.health import DelayHealth
from penstock.retry.rings import rings
from penstock.retry.routes import RouteRefusals, find_routes, keep_records
from penstock.retry.service import DelayService
from penstock.retry.store.index import DueTimeIndex, IndexKey
from penstock.types import Uuid

LOOK_S: Final = 1.0
KEEP_LOOKS: Final = 30
STEADY_MS: Final = 30_000
"""A failure after this long counts as the first."""
RETRY_S: Final = (0.1, 0.5, 1.0, 5.0)
NO_PARTITION: Final = IndexKey(Uuid(bytes(16)), 0)
"""A made-up key, looked up to see whether the store answers."""

log = logging.getLogger(__name__)


FindRoutes: TypeAlias = Callable[[Client], Awaitable[dict[str, Route]]]


async def serve_delays(
    client: Client,
    index: DueTimeIndex,
    instance: str,
    on_ready: Callable[[], Awaitable[None]],
    find: FindRoutes | None = None,
    health: DelayHealth | None = None,
) -> None:
    """Runs until cancelled. After an error, a new service finds out what was delivered."""
    failures, health, in_rings = 0, health or DelayHealth(), RouteRefusals()
    found_by = find or partial(find_routes, refusals=RouteRefusals())

    async def served(client: Client) -> dict[str, Route]:
        """The routes without those that form rings."""
        found = await found_by(client)
        refused = rings(found)
        in_rings.log({topic: f"its records would go round: {refused[topic]}" for topic in refused})
        return {topic: route for topic, route in found.items() if topic not in refused}

    while True:
        began_ms = health.clock.monotonic_ms()
        try:
            await _serve(client, index, instance, on_ready, served, health)
        except* KafkaError as errors:
            if health.clock.monotonic_ms() - began_ms > STEADY_MS:
                failures = 0
            wait_s = RETRY_S[min(failures, len(RETRY_S) - 1)]
            failures += 1
            error = _first(errors)
            health.failed(error)
            log.warning("starting again in %g s: %s", wait_s, error)
        else:
            failures = 0
            continue
        finally:
            health.service = None
        client.forget()
        await asyncio.sleep(wait_s)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _serve(
    client: Client,
    index: DueTimeIndex,
    instance: str,
    on_ready: Callable[[], Awaitable[None]],
    find: FindRoutes,
    health: DelayHealth,
) -> None:
    routes = await find(client)
    health.reached()
    # Before it takes partitions: other instances may have a store that answers.
    await index.indexed_to(NO_PARTITION)
    health.stepped()
    for route in routes.values():
        await keep_records(client, route)
    if not routes:
        await on_ready()
        await asyncio.sleep(LOOK_S)
        return
    async with (
        DelayService(
            client, index, routes, instance=instance, clock=health.clock, counts=health.counts
        ) as service,
        asyncio.TaskGroup() as tasks,
    ):
        health.service = service
        looking = tasks.create_task(_follow_routes(client, service, find))
        await on_ready()
        while service.routes:
            await service.step()
            health.stepped()
        looking.cancel()


async def _follow_routes(client: Client, service: DelayService, find: FindRoutes) -> None:
    for look in count(1):
        await asyncio.sleep(LOOK_S)
        found = await find(client)
        for topic, route in found.items():
            # From time to time also known routes: their retention may have been turned on again.
            if route != service.routes.get(topic) or look % KEEP_LOOKS == 0:
                await keep_records(client, route)
        service.route(found)
