"""The contract of `penstock.metadata.store.MetadataStore`: run it on every implementation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from penstock.testing.check_store_nodes import NODE_CHECKS
from penstock.testing.check_store_sessions import SESSION_CHECKS
from penstock.testing.store_ensemble import Ensemble


def check_metadata_store(make: Callable[[], AbstractAsyncContextManager[Ensemble]]) -> None:
    """Run every check; each call of `make` returns a new ensemble with an empty tree."""

    async def run(check: Callable[[Ensemble], Awaitable[None]]) -> None:
        async with make() as ensemble:
            await check(ensemble)

    for check in (*NODE_CHECKS, *SESSION_CHECKS):
        asyncio.run(run(check))
