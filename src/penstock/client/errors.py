"""A client's exceptions, and which error codes it retries."""

from typing import Final

from penstock.errors import ErrorCode, KafkaError


class BrokerRefused(KafkaError):
    """A broker answered with an error: its code, and its message if it sent one."""

    def __init__(self, code: int, about: str, text: str | None = None) -> None:
        try:
            self.code = ErrorCode(code)  # type: ignore[misc]  # see KafkaError
            name = self.code.name
        except ValueError:  # from a newer broker
            name = f"error code {code}"
        self.text = text
        super().__init__(f"{about}: {name}" + (f" ({text})" if text else ""))
        self.about = about

    def with_hint(self, hint: str) -> "BrokerRefused":
        """The same error with another sentence."""
        hinted = BrokerRefused(self.code, self.about)
        hinted.args = (f"{self}.{hint}",)
        return hinted


class ConnectionFailed(KafkaError):
    """No connection, or one that broke before the response: the outcome is unknown."""

    code = ErrorCode.NETWORK_EXCEPTION


class ConnectionRefused(ConnectionFailed):
    """No process listens at the address."""


class TlsFailed(ConnectionFailed):
    """The broker and this client do not agree on TLS."""


class RequestTimedOut(KafkaError):
    """No response within the caller's time limit."""

    code = ErrorCode.REQUEST_TIMED_OUT


class IncompleteResponse(KafkaError):
    """The response lacks what was requested, so the request is retried.

    Taking it for "there is none" could repeat work that was done before.
    """

    code = ErrorCode.NETWORK_EXCEPTION


class UnsupportedVersion(KafkaError):
    """Client and broker support no common version of the API."""

    code = ErrorCode.UNSUPPORTED_VERSION


def check(code: int, about: str, text: str | None = None) -> None:
    """Raise `BrokerRefused` unless the code is NONE."""
    if code != ErrorCode.NONE:
        raise BrokerRefused(code, about, text)


ALWAYS_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""Codes that do not judge the request: this broker is not, or not yet, the right one."""

RETRIABLE: Final = ALWAYS_RETRIABLE | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""All codes that the Java client calls retriable; for requests that are safe to repeat."""
