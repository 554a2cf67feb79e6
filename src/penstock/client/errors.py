"""What a broker's error codes mean to a client: an exception, and whether to ask again."""

from typing import Final

from penstock.errors import ErrorCode, KafkaError


class BrokerRefused(KafkaError):
    """A broker said no: its code, and its words where it gave any."""

    def __init__(self, code: int, about: str, words: str | None = None) -> None:
        try:
            self.code = ErrorCode(code)
            name = self.code.name
        except ValueError:  # a broker newer than our table
            name = f"error code {code}"
        super().__init__(f"{about}: {name}" + (f" ({words})" if words else ""))


class ConnectionFailed(KafkaError):
    """No connection, or one that broke before the answer came: nobody knows what was done."""

    code = ErrorCode.NETWORK_EXCEPTION


class ConnectionRefused(ConnectionFailed):
    """Nobody listens at the address: the process that did is gone."""


class RequestTimedOut(KafkaError):
    """No answer within the time that the caller gave."""

    code = ErrorCode.REQUEST_TIMED_OUT


class IncompleteResponse(KafkaError):
    """The answer leaves out what was asked for: it says nothing, and is asked for again.

    To take it for "there is none" could repeat what was done before.
    """

    code = ErrorCode.NETWORK_EXCEPTION


class UnsupportedVersion(KafkaError):
    """Client and broker have no version of the API in common."""

    code = ErrorCode.UNSUPPORTED_VERSION


def check(code: int, about: str, words: str | None = None) -> None:
    """Raise what the code says, if it is an error."""
    if code != ErrorCode.NONE:
        raise BrokerRefused(code, about, words)


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
"""The one asked is not, or not yet, the one that can answer; none of these judges the request."""

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
"""All codes that the Java client calls retriable; right for what may be repeated at no cost."""
