"""Forwards requests to the controller that only it can answer.

Clients send them to the controller that Metadata names. Old clients, and clients that do not know
of an election yet, send them to another broker. The response is the controller's own, in the
client's version.

A forwarded request is not forwarded again: during an election two brokers may each take the other
for the controller, and would wait for one another. The client software name of the connection
(KIP-511) tells that a broker sent it. Kafka's own way, the Envelope API, does not work in a cluster
with Kafka brokers: in ZooKeeper mode they list it but close the connection that uses it.
"""

from collections.abc import Coroutine
from functools import wraps
from typing import Any, cast

from penstock.broker.context import AsyncHandler, Context, RequestT, ResponseT
from penstock.broker.peers.connection import BROKER_SOFTWARE
from penstock.controller.epoch import NotController


def at_controller(
    handler: AsyncHandler[RequestT, ResponseT],
) -> AsyncHandler[RequestT, ResponseT]:
    """Run the handler here if this broker is the controller; otherwise forward the request."""

    @wraps(handler)
    def here_or_there(request: RequestT, ctx: Context) -> Coroutine[Any, Any, ResponseT]:
        if ctx.services.control.controller.is_active:
            return handler(request, ctx)
        if ctx.peer.software_name == BROKER_SOFTWARE:
            raise NotController(f"broker {ctx.services.broker_id} is not the controller")
        response_type = cast("type[ResponseT]", ctx.header.api.response)
        return ctx.services.control.link.call(request, response_type, version=ctx.version)

    return here_or_there
