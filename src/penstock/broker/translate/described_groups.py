"""Describes groups of one kind: shared by consumer, share and streams groups."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.result import PendingReply
from penstock.errors import KafkaError

G = TypeVar("G")
D = TypeVar("D")
R = TypeVar("R")


def described_groups(
    names: Sequence[str],
    describe: Callable[[str], PendingReply[G]],
    ctx: Context,
    *,
    refused: KafkaError | None,
    known: Callable[[G], D],
    unknown: Callable[[str, KafkaError], D],
    respond: Callable[[list[D]], R],
) -> R | Parked[R]:
    """Respond with each group in the order of the request; `refused` is the error for all."""
    if refused is not None:
        return respond([unknown(each, refused) for each in names])

    def respond_to(replies: list[G | KafkaError]) -> R:
        return respond(
            [
                unknown(name, reply) if isinstance(reply, KafkaError) else known(reply)
                for name, reply in zip(names, replies, strict=True)
            ]
        )

    return answered([describe(each) for each in names], respond_to, ctx)
