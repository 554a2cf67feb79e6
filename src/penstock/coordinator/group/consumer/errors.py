"""Errors that members of the consumer protocol get."""

from penstock.errors import ErrorCode, KafkaError


class InvalidHeartbeat(KafkaError):
    """The request contradicts itself, or lacks a required field."""

    code = ErrorCode.INVALID_REQUEST


class FencedMemberEpoch(KafkaError):
    """The member has a wrong epoch: it must abandon its partitions and join again."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(KafkaError):
    """The member fetches or commits offsets with another epoch than its present one."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class UnreleasedInstanceId(KafkaError):
    """Another process uses the static member's instance id and has not left."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignor(KafkaError):
    """`group.consumer.assignors` does not name this assignor."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class AssignorFailed(KafkaError):
    """An assignor raised, or returned an invalid assignment."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class NotServed(KafkaError):
    """`group.coordinator.rebalance.protocols` does not name this protocol, or the request's version
    is older than the protocol.
    """

    code = ErrorCode.UNSUPPORTED_VERSION
