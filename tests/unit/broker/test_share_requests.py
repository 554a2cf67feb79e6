"""Acknowledgements that were written while their request was queued."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from penstock.broker.share.in_flight import Transition
from penstock.broker.translate.share_requests import until_written
from penstock.broker.waiters import Waiters


def test_a_completed_write_is_not_waited_for() -> None:
    async def main() -> None:
        ctx = SimpleNamespace(services=SimpleNamespace(waiters=Waiters(asyncio.get_running_loop())))
        done = Transition()
        done.end()
        async with asyncio.timeout(5):
            await until_written(cast("Any", {"partition": done}), cast("Any", ctx))

    asyncio.run(main())
