"""Refusals of a request's items one by one: a client without permissions may name very many."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from penstock.broker.handling.turns import are_many, by_topic, turns


def no_parts(_: Any) -> Sequence[Any]:
    return ()


def no_part(_: Any, __: Any) -> Any:
    raise AssertionError("there are no parts")


class Refusal(NamedTuple):
    """How to refuse an item of a request: `whole(item, refused parts)`.

    Each part of an item (a partition of a topic) is refused by `part(item, part)`.
    """

    whole: Callable[[Any, list[Any]], Any]
    parts: Callable[[Any], Sequence[Any]] = no_parts
    part: Callable[[Any, Any], Any] = no_part


def when_refused(items: Sequence[Any], how: Refusal, answered: Callable[[list[Any]], Any]) -> Any:
    """The reply of `answered` to the refusals; very many take several loop turns."""
    if are_many(items, how.parts):
        return _when_many_are_refused(items, how, answered)
    whole, parts, part = how
    return answered([whole(each, [part(each, one) for one in parts(each)]) for each in items])


async def _when_many_are_refused(
    items: Sequence[Any], how: Refusal, answered: Callable[[list[Any]], Any]
) -> Any:
    reply = answered(await all_refused(items, how))
    return await reply if isinstance(reply, Coroutine) else reply


async def all_refused(items: Sequence[Any], how: Refusal) -> list[Any]:
    """The refusals, made in turns."""
    return await turns(by_topic(items, how.parts, how.part, how.whole))
