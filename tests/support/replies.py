"""Shows a coordinator's replies in transcripts."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from penstock.coordinator.result import PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.errors import KafkaError

PendingReplies: TypeAlias = dict[str, tuple[PendingReply[Any], Callable[[Any], str]]]
"""Pending replies by their name in the transcript, each with a function that formats it."""


def reported(
    runtime: CoordinatorRuntime[Any, Any], pending_replies: PendingReplies
) -> Iterator[str]:
    """A line for each reply that has arrived; it is then no longer pending."""
    for name, (pending, text_of) in list(pending_replies.items()):
        reply = runtime.reply(pending)
        if reply is not None:
            del pending_replies[name]
            text = reply.code.name if isinstance(reply, KafkaError) else text_of(reply)
            yield f"{name}: {text}"
