"""Turns a coordinator's replies into a response, at once or when they arrive."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, TypeVar

from penstock.broker.context import Context
from penstock.broker.handling.turns import at_once, turns
from penstock.broker.parked import Parked
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.result import PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition

T = TypeVar("T")
R = TypeVar("R")

UNLIMITED_MS = 2**31 - 1
"""The request itself has no timeout: the group ends every join."""
MOST_AT_ONCE: Final = 20_000
"""The most items of a response that are encoded in one loop turn after a wait: some ten
milliseconds.
"""


def answered(
    pending_replies: Sequence[PendingReply[T]],
    respond: Callable[[list[T | KafkaError]], R],
    ctx: Context,
    wait_ms: int | None = None,
    of: CoordinatorRuntime[Any, Any] | None = None,
) -> R | Parked[R]:
    """Respond once every reply has a committed value, or after `wait_ms`.

    `of` is the coordinator's runtime, by default that of groups; `wait_ms` defaults to
    `offsets.commit.timeout.ms`.
    """
    runtime: CoordinatorRuntime[Any, Any] = (
        ctx.services.coordination.groups.runtime if of is None else of
    )
    response = _attempted(pending_replies, respond, runtime)
    if response is not None:
        return response

    def attempt() -> R | None:
        return _attempted(pending_replies, respond, runtime)

    def finished() -> R:
        replies: list[T | KafkaError] = []
        for pending in pending_replies:
            reply = runtime.reply(pending)
            late = CoordinatorNotAvailable("not enough replicas have the record yet")
            replies.append(late if reply is None else reply)
        return respond(replies)

    if wait_ms is None:
        wait_ms = ctx.services.config.group.offsets_commit_timeout_ms
    partitions = {TopicPartition(runtime.name, each.partition) for each in pending_replies}
    return Parked([*pending_replies, *partitions], wait_ms, attempt, finished)


async def answered_in_turns(
    pending_replies: Sequence[PendingReply[T]],
    respond: Callable[[list[T | KafkaError]], Generator[None, None, R]],
    items: int,
    ctx: Context,
    wait_ms: int | None = None,
    of: CoordinatorRuntime[Any, Any] | None = None,
) -> R | Parked[R]:
    """Like `answered`, for a response of `items` items, made in turns.

    Few large requests run at a time. One that waits for replicas gives its slot up, unless its
    response is too long to be encoded in one loop turn.
    """
    steps = answered(pending_replies, respond, ctx, wait_ms, of)
    if isinstance(steps, Parked):
        if items <= MOST_AT_ONCE:
            return parked_in_turns(steps, ctx)
        steps = await ctx.services.waiters.future(steps)
    return await turns(steps)


def parked_in_turns(waiting: Parked[Generator[None, None, R]], ctx: Context) -> Parked[R]:
    """Runs the steps in turns, and ends with their return value.

    Many requests may wait for the same replicas, and wake together.
    """
    begun: list[Generator[None, None, R]] = []

    def go_on() -> None:
        ctx.services.waiters.changed(waiting.keys[0])

    def attempt() -> R | None:
        steps = begun[0] if begun else waiting.attempt()
        if steps is None:
            return None
        begun[:] = [steps]
        try:
            next(steps)
        except StopIteration as end:
            response: R = end.value
            return response
        # Later, not now: if this attempt runs before the request is parked, a change would wake no
        # one.
        asyncio.get_running_loop().call_soon(go_on)
        return None

    def expire() -> R:
        return at_once(begun[0] if begun else waiting.expire())

    return Parked(waiting.keys, waiting.wait_ms, attempt, expire)


async def replied(pending: PendingReply[T], ctx: Context) -> T:
    """The reply of the group coordinator; raises a refusal."""
    reply = await reply_or_error(pending, ctx)
    if isinstance(reply, KafkaError):
        raise reply
    return reply


async def reply_or_error(pending: PendingReply[T], ctx: Context) -> T | KafkaError:
    """The reply of the group coordinator, or its refusal."""
    found = answered([pending], lambda replies: replies, ctx)
    if isinstance(found, Parked):
        found = await ctx.services.waiters.future(found)
    (reply,) = found
    return reply


def _attempted(
    pending_replies: Sequence[PendingReply[T]],
    respond: Callable[[list[T | KafkaError]], R],
    runtime: CoordinatorRuntime[Any, Any],
) -> R | None:
    """The response, if every reply has a value."""
    replies: list[T | KafkaError] = []
    for pending in pending_replies:
        reply = runtime.reply(pending)
        if reply is None:
            return None
        replies.append(reply)
    return respond(replies)


def code_for(refused: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if refused is None else refused.code
