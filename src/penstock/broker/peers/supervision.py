"""Restarts background loops that must not end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.controller.operations import EXPECTED_FAILURES

logger = logging.getLogger(__name__)

RESTART_S = 1.0


async def supervised(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a background loop for ever: log its exceptions and start it again."""
    while True:
        try:
            await run()
        except EXPECTED_FAILURES as error:
            logger.info("background loop %r starts again: %s", name, error)
        except Exception:  # the boundary around a background loop
            logger.exception("background loop %r failed and starts again", name)
        await asyncio.sleep(RESTART_S)
