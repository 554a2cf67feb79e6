"""Why a member of the consumer protocol is refused, by Kafka's codes."""

from penstock.errors import ErrorCode, KafkaError


class InvalidHeartbeat(KafkaError):
    """The request contradicts itself, or lacks what it must say."""

    code = ErrorCode.INVALID_REQUEST


class FencedMemberEpoch(KafkaError):
    """The member has missed something: it gives its partitions up and joins anew."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(KafkaError):
    """The member asks for offsets, or commits some, before it has heard of its present epoch."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class UnreleasedInstanceId(KafkaError):
    """The static member is in use by a process that has not left."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignor(KafkaError):
    """No such name in `group.consumer.assignors`."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class AssignorFailed(KafkaError):
    """An assignor raised, or gave out what it cannot give."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class NotServed(KafkaError):
    """`group.coordinator.rebalance.protocols` does not name this protocol, or the request is of a
    version from before it.
    """

    code = ErrorCode.UNSUPPORTED_VERSION
