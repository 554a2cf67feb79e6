"""Handlers behind their guards."""

from collections.abc import Mapping
from functools import wraps
from typing import Any

from penstock.broker.authorization.guard import Guard
from penstock.broker.authorization.table import GUARDS
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.lazy_handlers import each
from penstock.wire.apis import APIS


def guarded(handlers: Mapping[int, AnyHandler]) -> Mapping[int, AnyHandler]:
    """Put each handler behind its guard. A handler without a guard is a bug: raises, so that the
    broker does not start.
    """
    unguarded = handlers.keys() - GUARDS.keys()
    if unguarded:
        raise KeyError(f"no guard of {sorted(unguarded)}")
    return each(handlers, lambda key, handler: _guarded(handler, GUARDS[key], key))


def _guarded(handler: AnyHandler, guard: Guard, key: int) -> AnyHandler:
    name = APIS[key].name

    @wraps(handler)
    def allowed(request: Any, ctx: Context) -> Any:
        authorizer = ctx.services.authorizer
        assert authorizer is not None, "guards are for brokers with an authorizer"
        return guard(request, ctx, handler, authorizer.access(ctx.peer, name))

    return allowed
