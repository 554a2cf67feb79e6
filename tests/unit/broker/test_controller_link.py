"""A request to the controller ends after `request.timeout.ms`."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.peers.controller_link import ControllerLink
from penstock.client.errors import RequestTimedOut
from penstock.client.security import no_security
from penstock.types import BrokerId
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def test_a_request_fails_in_time_if_the_controller_never_takes_over() -> None:
    broker_id = BrokerId(1)
    link = ControllerLink(
        broker_id,
        cast("Any", SimpleNamespace(is_active=False)),
        lambda: cast("Any", SimpleNamespace(controller=broker_id)),
        listener="PLAINTEXT",
        source=None,
        reached=set(),
        security=no_security,
        broker_epoch=lambda: 0,
        timeout_ms=60,
    )

    async def main() -> None:
        async with asyncio.timeout(20):
            await link.call(ApiVersionsRequest(), ApiVersionsResponse)

    with pytest.raises(RequestTimedOut, match="within 60 ms"):
        asyncio.run(main())
