"""Errors that share consumers get from a partition's leader."""

from penstock.errors import ErrorCode, KafkaError


class InvalidRecordState(KafkaError):
    """The member does not hold this record, or no longer does."""

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
    """The member has no session, or no longer has one."""

    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpoch(KafkaError):
    """A request of the session was lost, or arrived twice."""

    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class ShareSessionLimitReached(KafkaError):
    """The broker has `group.share.max.share.sessions` sessions already."""

    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED
