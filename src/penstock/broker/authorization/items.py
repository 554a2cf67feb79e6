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


def split_by_permission(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """The allowed items, and the others.

    One pass: a client without permissions may name very many items, and searching a list for each
    would block the loop.
    """
    allowed: list[T] = []
    denied: list[T] = []
    for each in items:
        (allowed if may(each) else denied).append(each)
    return allowed, denied


def answer_by_permission(
    items: Sequence[T], may: Callable[[T], bool], answered: Callable[[list[T], list[T]], Any]
) -> Any:
    """The reply of `answered` to the two lists of `split_by_permission`; very many items take
    several loop turns.
    """
    if len(items) <= NAMES_A_PIECE:
        return answered(*split_by_permission(items, may))
    return _answer_many_by_permission(items, may, answered)


async def _answer_many_by_permission(
    items: Sequence[T], may: Callable[[T], bool], answered: Callable[[list[T], list[T]], Any]
) -> Any:
    reply = answered(*await split_in_slices(items, lambda some: split_by_permission(some, may)))
    return await reply if isinstance(reply, Coroutine) else reply


async def split_in_slices(
    items: Sequence[T], look: Callable[[Sequence[T]], tuple[list[A], list[B]]]
) -> tuple[list[A], list[B]]:
    """The two lists that `look` makes of the items, with some items per loop turn."""
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
    """A guard of the items in the request's list `listed`, with results in the response's
    `answers`.
    """

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        def answered(allowed: list[Any], others: list[Any]) -> Any:
            if not others:
                return handler(request, ctx)

            def joined(denied: list[Any]) -> Any:
                # Without allowed items the handler is not called: an empty list may mean everything
                # to it.
                reply = handler(replace(request, **{listed: allowed}), ctx) if allowed else empty()
                return then(
                    reply,
                    lambda found: replace(found, **{answers: [*getattr(found, answers), *denied]}),
                )

            return when_refused(others, refusal, joined)

        return answer_by_permission(
            getattr(request, listed), lambda each: may(access, each, ctx), answered
        )

    return guard


def topic_named(operation: AclOperation) -> Callable[[Access, Any, Context], bool]:
    return lambda access, topic, _: access.topic(operation, topic.name)


def topic_named_or_id(operation: AclOperation) -> Callable[[Access, Any, Context], bool]:
    """Checks the topic by name or id; an unknown id is left to the handler to refuse."""

    def may(access: Access, topic: Any, ctx: Context) -> bool:
        name = topic.name
        if topic.topic_id != NO_UUID:
            name = ctx.services.cluster.image.topic_names.get(topic.topic_id)
        return name is None or access.topic(operation, name)

    return may
