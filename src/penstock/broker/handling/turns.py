"""Answers requests with very many items in turns, with other requests in between."""

import asyncio
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Sized,
)
from functools import wraps
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from penstock.broker.acls.access import counted_together
from penstock.broker.context import AnyHandler, Context
from penstock.broker.parked import Parked
from penstock.loop import with_turns

T = TypeVar("T")
Topic = TypeVar("Topic")
Part = TypeVar("Part")
Answer = TypeVar("Answer")
Result = TypeVar("Result")

PARTITIONS_A_TURN: Final = 500
"""A few milliseconds."""
KEYS_A_TURN: Final = 5_000
NAMES_A_PIECE: Final = 200
"""Smaller than `KEYS_A_TURN`, since each group or transaction needs a call to its coordinator."""


def by_topic(
    topics: Iterable[Topic],
    parts: Callable[[Topic], Iterable[Part]],
    answer: Callable[[Topic, Part], Answer],
    result: Callable[[Topic, list[Answer]], Result],
    *,
    a_turn: int = PARTITIONS_A_TURN,
    weight: Callable[[Answer], int] | None = None,
) -> Generator[None, None, list[Result]]:
    """The result for each topic, from the answers for its partitions.

    A partition counts as one towards `a_turn`, or as `weight` says of its answer.
    """
    count = 0
    results = []
    for topic in topics:
        count += 1  # a topic without partitions takes time too
        if count >= a_turn:
            count = 0
            yield
        answers = []
        for part in parts(topic):
            answers.append(answer(topic, part))
            count += 1 if weight is None else weight(answers[-1])
            if count >= a_turn:
                count = 0
                yield
        results.append(result(topic, answers))
    return results


def in_turns(steps: Generator[None, None, T]) -> T | Coroutine[Any, Any, T]:
    """The generator's return value; a coroutine for it if there is more than one step."""
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    return turns(steps)


def at_once(steps: Generator[None, None, T]) -> T:
    """The generator's return value, without turns: for few items."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def are_many(topics: Iterable[Topic], parts: Callable[[Topic], Sized]) -> bool:
    """Whether the topics and their partitions take more than one turn."""
    count = 0
    for topic in topics:
        count += 1 + len(parts(topic))
        if count > PARTITIONS_A_TURN:
            return True
    return False


async def turns(steps: Generator[None, None, T]) -> T:
    """Run the steps, with other requests in between; returns the generator's return value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        await asyncio.sleep(0)


class Pieces(NamedTuple):
    """A request's list `names`, handled piece by piece, and the response's list `results`. Items
    with the same key name one thing twice, and are handled in the same piece.
    """

    names: str
    results: str
    key: Callable[[Any, Context], Hashable] | None = None
    answers_each: bool = False
    """Whether a thing named twice gets a result each time, not one for all."""
    size: int | None = None
    """Names per piece, if not the default."""


def in_pieces(handler: AnyHandler, pieces: Pieces) -> AnyHandler:
    """A handler that takes a long list piece by piece and joins the responses.

    For requests whose items are independent of each other.
    """
    names, results, key, answers_each, size = pieces
    # Two items of a kind are enough: more are refused in the same way. A description is larger than
    # its name, so one per repetition would let a small request fill the memory.
    most = sys.maxsize if answers_each else 2

    @wraps(handler)
    def handle(request: Any, ctx: Context) -> Any:
        if len(getattr(request, names) or ()) <= (size or NAMES_A_PIECE):
            return handler(request, ctx)
        return handled(request, ctx)

    async def handled(request: Any, ctx: Context) -> Any:
        replies: list[Any] = []
        items = getattr(request, names)
        groups: Iterable[list[Any]] = ([each] for each in items)
        if key is not None:
            groups = await _grouped(items, lambda each: key(each, ctx), most)
        with counted_together():
            async for piece in _cut(groups, size or NAMES_A_PIECE):
                reply = handler(replace(request, **{names: piece}), ctx)
                replies.append(await reply if isinstance(reply, Coroutine) else reply)
        return joined(replies, results)

    return handle


async def _grouped(
    items: Iterable[Any], key: Callable[[Any], Hashable], most: int
) -> Iterable[list[Any]]:
    """The items by key, in the order of first appearance, at most `most` per key."""
    found: dict[Hashable, list[Any]] = {}
    async for each in with_turns(items, KEYS_A_TURN):
        same = found.setdefault(key(each), [])
        if len(same) < most:
            same.append(each)
    return found.values()


def _short(group: list[Any], size: int) -> Iterator[list[Any]]:
    """Split a long group; each part has at least two items, to show the repetition in each."""
    at = 0
    while at < len(group):
        end = at + size
        if len(group) - end == 1:
            end += 1
        yield group[at:end]
        at = end


async def _cut(groups: Iterable[list[Any]], size: int) -> AsyncIterator[list[Any]]:
    piece: list[Any] = []
    for group in chain.from_iterable(_short(each, size) for each in groups):
        piece += group
        if len(piece) >= size:
            yield piece
            piece = []
            await asyncio.sleep(0)
    if piece:
        yield piece


def joined(replies: list[Any], results: str) -> Any:
    """The joined response, or one parked until all pieces are answered."""
    if not any(isinstance(each, Parked) for each in replies):
        together: dict[str, Any] = {
            results: [result for each in replies for result in getattr(each, results)]
        }
        if hasattr(replies[0], "throttle_time_ms"):
            together["throttle_time_ms"] = max(each.throttle_time_ms for each in replies)
        failed = (each for each in replies if getattr(each, "error_code", 0))
        return replace(next(failed, replies[0]), **together)

    def attempt() -> Any:
        for index, each in enumerate(replies):
            if isinstance(each, Parked):
                response = each.attempt()
                if response is None:
                    return None
                replies[index] = response
        return joined(replies, results)

    def expire() -> Any:
        found = [each.expire() if isinstance(each, Parked) else each for each in replies]
        return joined(found, results)

    response = attempt()  # a piece's wait may have ended while the others were handled
    if response is not None:
        return response
    parked = [each for each in replies if isinstance(each, Parked)]
    keys = {key for each in parked for key in each.keys}
    return Parked(keys, max(each.wait_ms for each in parked), attempt, expire)
