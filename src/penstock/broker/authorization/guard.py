"""The building blocks of guards: refusals, and responses joined with them."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from penstock.broker.acls.access import Access
from penstock.broker.context import AnyHandler, Context
from penstock.broker.parked import Parked
from penstock.errors import ErrorCode, KafkaError

Guard: TypeAlias = Callable[[Any, Context, AnyHandler, Access], Any]
"""guard(request, context, handler, access) returns the handler's reply for what is allowed."""

MESSAGES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
TOPIC, GROUP, CLUSTER, TRANSACTION = MESSAGES
REFUSALS = {
    **MESSAGES,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}


class NotAuthorized(KafkaError):
    """No ACL allows the operation, or one denies it."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(MESSAGES[code])
        self.code = code  # type: ignore[misc]  # see KafkaError


def then(reply: Any, change: Callable[[Any], Any]) -> Any:
    """The reply with its response changed, at once or when it arrives."""
    if reply is None:
        return None
    if isinstance(reply, Parked):
        parked = reply

        def attempt() -> Any:
            response = parked.attempt()
            return None if response is None else change(response)

        return Parked(
            parked.keys,
            parked.wait_ms,
            attempt,
            lambda: change(parked.expire()),
            parked.notice,
            has_acted=parked.has_acted,
            gives_way=parked.gives_way,
        )
    if isinstance(reply, Coroutine):
        return _later(reply, change)
    return change(reply)


async def _later(reply: Coroutine[Any, Any, Any], change: Callable[[Any], Any]) -> Any:
    return then(await reply, change)
