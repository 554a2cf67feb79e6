"""Errors that the group coordinator answers with."""

from penstock.errors import ErrorCode, KafkaError


class InvalidGroupId(KafkaError):
    """The group id is empty."""

    code = ErrorCode.INVALID_GROUP_ID


class GroupIdNotFound(KafkaError):
    """There is no such group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroup(KafkaError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupSubscribedToTopic(KafkaError):
    """A member subscribes to this topic: its offsets are in use."""

    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class InvalidSessionTimeout(KafkaError):
    """Outside `group.min.session.timeout.ms` and `group.max.session.timeout.ms`."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class InconsistentGroupProtocol(KafkaError):
    """No assignment strategy that all members support, or another protocol type."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class GroupMaxSizeReached(KafkaError):
    """The group already has `group.max.size` members."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class UnknownMemberId(KafkaError):
    """The group has no such member, or no longer: the client must join again."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceId(KafkaError):
    """Another process has taken over the static member's instance id."""

    code = ErrorCode.FENCED_INSTANCE_ID


class IllegalGeneration(KafkaError):
    """The request is for another generation than the group's."""

    code = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(KafkaError):
    """The member must join again, so that partitions can be reassigned."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class MemberIdRequired(KafkaError):
    """The first join only gives the member its id; it joins again with that id (KIP-394)."""

    code = ErrorCode.MEMBER_ID_REQUIRED

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class UnstableOffsetCommit(KafkaError):
    """An open transaction may move the offset: retry once it has ended (KIP-447)."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class OffsetMetadataTooLarge(KafkaError):
    """The metadata of an offset is longer than `offset.metadata.max.bytes`."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
