"""What transcripts tell of the replies that a coordinator gives."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from penstock.coordinator.result import PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.errors import KafkaError

PendingReplies: TypeAlias = dict[str, tuple[PendingReply[Any], Callable[[Any], str]]]
"""By the name under which a transcript tells of it, with how to tell it."""


def told(runtime: CoordinatorRuntime[Any, Any], pending_replies: PendingReplies) -> Iterator[str]:
    """A line for each reply that is there; it is pending no longer."""
    for name, (pending, text_of) in list(pending_replies.items()):
        reply = runtime.reply(pending)
        if reply is not None:
            del pending_replies[name]
            text = reply.code.name if isinstance(reply, KafkaError) else text_of(reply)
            yield f"{name}: {text}"
