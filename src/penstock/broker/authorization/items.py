"""Guards that allow or refuse the items of a request one by one."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    Guard,
    then,
)
from penstock.broker.context import AnyHandler, Context
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID

Op = AclOperation
T = TypeVar("T")


def parted(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those that may be asked for, and the others.

    In one walk: who has no rights may still name very many, and to search a list for each of them
    would hold up everybody.
    """
    allowed: list[T] = []
    denied: list[T] = []
    for each in items:
        (allowed if may(each) else denied).append(each)
    return allowed, denied


def each_item(
    listed: str,
    may: Callable[[Access, Any, Context], bool],
    refused: Callable[[Any, Context], Any],
    answers: str,
    empty: Callable[[], Any],
) -> Guard:
    """Items in the request's list `listed`, whose results are in the response's list `answers`."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        items = getattr(request, listed)
        allowed, others = parted(items, lambda each: may(access, each, ctx))
        if not others:
            return handler(request, ctx)
        denied = [refused(each, ctx) for each in others]
        # An empty list may mean everything to the handler: it is not asked.
        reply = handler(replace(request, **{listed: allowed}), ctx) if allowed else empty()
        return then(
            reply, lambda found: replace(found, **{answers: [*getattr(found, answers), *denied]})
        )

    return guard


def topic_named(operation: AclOperation) -> Callable[[Access, Any, Context], bool]:
    return lambda access, topic, _: access.topic(operation, topic.name)


def topic_named_or_id(operation: AclOperation) -> Callable[[Access, Any, Context], bool]:
    """By name, or by an id; one that no topic has is left to the handler to refuse."""

    def may(access: Access, topic: Any, ctx: Context) -> bool:
        name = topic.name
        if topic.topic_id != NO_UUID:
            name = ctx.services.cluster.image.topic_names.get(topic.topic_id)
        return name is None or access.topic(operation, name)

    return may
