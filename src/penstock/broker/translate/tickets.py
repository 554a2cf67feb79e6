"""What a coordinator answers, at once or later, as a response."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.broker.context import Context
from penstock.broker.waiters import Parked
from penstock.coordinator.outcome import Ticket
from penstock.coordinator.refusal import CoordinatorNotAvailable
from penstock.coordinator.runtime import Runtime
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition

T = TypeVar("T")
R = TypeVar("R")

UNLIMITED_MS = 2**31 - 1
"""The group itself ends every join; the request need not."""


def answered(
    tickets: Sequence[Ticket[T]],
    respond: Callable[[list[T | KafkaError]], R],
    ctx: Context,
    wait_ms: int | None = None,
    of: Runtime[Any, Any] | None = None,
) -> R | Parked[R]:
    """Respond once every ticket has its reply and it is committed, or when time is up.

    The tickets are of the coordinator of groups, unless of another; time is up after
    `offsets.commit.timeout.ms`, unless after `wait_ms`.
    """
    runtime: Runtime[Any, Any] = ctx.services.groups.runtime if of is None else of
    response = _attempted(tickets, respond, runtime)
    if response is not None:
        return response

    def attempt() -> R | None:
        return _attempted(tickets, respond, runtime)

    def finished() -> R:
        replies: list[T | KafkaError] = []
        for ticket in tickets:
            reply = runtime.reply(ticket)
            late = CoordinatorNotAvailable("not enough replicas have it yet")
            replies.append(late if reply is None else reply)
        return respond(replies)

    if wait_ms is None:
        wait_ms = ctx.services.config.group.offsets_commit_timeout_ms
    partitions = {TopicPartition(runtime.name, each.partition) for each in tickets}
    return Parked([*tickets, *partitions], wait_ms, attempt, finished)


def _attempted(
    tickets: Sequence[Ticket[T]],
    respond: Callable[[list[T | KafkaError]], R],
    runtime: Runtime[Any, Any],
) -> R | None:
    """The response, if every ticket has its reply."""
    replies: list[T | KafkaError] = []
    for ticket in tickets:
        reply = runtime.reply(ticket)
        if reply is None:
            return None
        replies.append(reply)
    return respond(replies)


def code_for(refused: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if refused is None else refused.code
