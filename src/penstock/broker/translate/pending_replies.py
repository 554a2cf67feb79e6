"""Turns a coordinator's replies into a response, at once or when they come."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.result import PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition

T = TypeVar("T")
R = TypeVar("R")

UNLIMITED_MS = 2**31 - 1
"""No timeout of the request: the group itself ends every join."""


def answered(
    pending_replies: Sequence[PendingReply[T]],
    respond: Callable[[list[T | KafkaError]], R],
    ctx: Context,
    wait_ms: int | None = None,
    of: CoordinatorRuntime[Any, Any] | None = None,
) -> R | Parked[R]:
    """Respond once every reply has its value and that is committed, or when time is up.

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


def _attempted(
    pending_replies: Sequence[PendingReply[T]],
    respond: Callable[[list[T | KafkaError]], R],
    runtime: CoordinatorRuntime[Any, Any],
) -> R | None:
    """The response, if every reply has its value."""
    replies: list[T | KafkaError] = []
    for pending in pending_replies:
        reply = runtime.reply(pending)
        if reply is None:
            return None
        replies.append(reply)
    return respond(replies)


def code_for(refused: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if refused is None else refused.code
