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
    wait_ms: int,
    of: Runtime[Any, Any] | None = None,
) -> R | Parked[R]:
    """Respond once every ticket has its reply and it is committed, or when time is up.

    The tickets are of the coordinator of groups, unless of another.
    """
    runtime = ctx.services.groups.runtime if of is None else of

    def reply(ticket: Ticket[T]) -> T | KafkaError:
        if ticket.reply is None or not runtime.is_ready(ticket):
            return CoordinatorNotAvailable("not enough replicas have it yet")
        return ticket.reply

    def attempt() -> R | None:
        return finished() if all(map(runtime.is_ready, tickets)) else None

    def finished() -> R:
        return respond([reply(each) for each in tickets])

    response = attempt()
    if response is not None:
        return response
    partitions = {TopicPartition(runtime.name, each.partition) for each in tickets}
    return Parked([*tickets, *partitions], wait_ms, attempt, finished)


def code_for(refused: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if refused is None else refused.code
