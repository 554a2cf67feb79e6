"""Requests that only the controller can answer are passed on to it, whichever broker got them.

Clients ask the controller that Metadata names; old ones, and those that have not heard of an
election yet, ask another. The answer is the controller's own, in the client's version.
"""

from functools import wraps
from typing import Any

from penstock.broker.context import Context, Handler
from penstock.broker.peers.controller_link import FORWARDED
from penstock.controller.epoch import NotController
from penstock.wire.schema import Message


def at_controller(handler: Handler) -> Handler:
    """The handler here, or at the broker that is the controller."""

    @wraps(handler)
    def here_or_there(request: Message, ctx: Context) -> Any:
        if ctx.services.controller.is_active:
            return handler(request, ctx)
        if ctx.header.client_id == FORWARDED:
            # Two brokers may each take the other for the controller until both have heard.
            raise NotController(f"broker {ctx.services.broker_id} is not the controller")
        return ctx.services.link.call(request, ctx.header.api.response, version=ctx.version)

    return here_or_there
