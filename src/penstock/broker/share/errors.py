"""Errors that share consumers get from a partition's leader."""

from penstock.errors import ErrorCode, KafkaError


class InvalidRecordState(KafkaError):
    """The member does not have this record, or no longer."""

    code = ErrorCode.INVALID_RECORD_STATE


class InvalidAcknowledgement(KafkaError):
    """The acknowledgements are not in order, overlap, or have an unknown type."""

    code = ErrorCode.INVALID_REQUEST


class InvalidShareRequest(KafkaError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class ShareNotServed(KafkaError):
    """The feature `share.version` is at level 0."""

    code = ErrorCode.UNSUPPORTED_VERSION


class ShareSessionNotFound(KafkaError):
    """There is no session of this member, or no longer."""

    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpoch(KafkaError):
    """A request of the session was lost, or came twice."""

    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class ShareSessionLimitReached(KafkaError):
    """There are `group.share.max.share.sessions` sessions."""

    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED
