"""Guards that allow or refuse the items of a request one by one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    Guard,
    then,
)
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.turns import NAMES_A_PIECE
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID

Op = AclOperation
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


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


def when_parted(
    items: Sequence[T], may: Callable[[T], bool], answered: Callable[[list[T], list[T]], Any]
) -> Any:
    """What `answered` makes of the two lists of `parted`; of very many, after some loop turns."""
    if len(items) <= NAMES_A_PIECE:
        return answered(*parted(items, may))
    return _when_many_are_parted(items, may, answered)


async def _when_many_are_parted(
    items: Sequence[T], may: Callable[[T], bool], answered: Callable[[list[T], list[T]], Any]
) -> Any:
    reply = answered(*await parted_in_slices(items, lambda some: parted(some, may)))
    return await reply if isinstance(reply, Coroutine) else reply


async def parted_in_slices(
    items: Sequence[T], look: Callable[[Sequence[T]], tuple[list[A], list[B]]]
) -> tuple[list[A], list[B]]:
    """The two lists that `look` makes of the items, of some in each loop turn."""
    allowed: list[A] = []
    denied: list[B] = []
    for start in range(0, len(items), NAMES_A_PIECE):
        found, others = look(items[start : start + NAMES_A_PIECE])
        allowed += found
        denied += others
        await asyncio.sleep(0)
    return allowed, denied


def each_item(
    listed: str,
    may: Callable[[Access, Any, Context], bool],
    refusal: Refusal,
    answers: str,
    empty: Callable[[], Any],
) -> Guard:
    """Items in the request's list `listed`, whose results are in the response's list `answers`."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        def answered(allowed: list[Any], others: list[Any]) -> Any:
            if not others:
                return handler(request, ctx)

            def joined(denied: list[Any]) -> Any:
                # An empty list may mean everything to the handler: it is not asked.
                reply = handler(replace(request, **{listed: allowed}), ctx) if allowed else empty()
                return then(
                    reply,
                    lambda found: replace(found, **{answers: [*getattr(found, answers), *denied]}),
                )

            return when_refused(others, refusal, joined)

        return when_parted(getattr(request, listed), lambda each: may(access, each, ctx), answered)

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
