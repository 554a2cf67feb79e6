"""Forwards requests to the controller that only it can answer.

Clients send them to the controller that Metadata names. Old clients, and clients that do not know
of an election yet, send them to another broker. The response is the controller's own, in the
client's version.
"""

from functools import wraps
from typing import Any

from penstock.broker.context import Context, Handler
from penstock.broker.peers.controller_link import FORWARDED
from penstock.controller.epoch import NotController
from penstock.wire.schema import Message


def at_controller(handler: Handler) -> Handler:
    """Run the handler here if this broker is the controller; otherwise forward the request."""

    @wraps(handler)
    def here_or_there(request: Message, ctx: Context) -> Any:
        if ctx.services.control.controller.is_active:
            return handler(request, ctx)
        if ctx.header.client_id == FORWARDED:
            # During an election two brokers may each take the other for the controller.
            raise NotController(f"broker {ctx.services.broker_id} is not the controller")
        return ctx.services.control.link.call(request, ctx.header.api.response, version=ctx.version)

    return here_or_there
