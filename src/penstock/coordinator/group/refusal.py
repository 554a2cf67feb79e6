"""Why a group's coordinator refuses a member, by Kafka's codes."""

from penstock.errors import ErrorCode, KafkaError


class InvalidGroupId(KafkaError):
    """A group needs a name."""

    code = ErrorCode.INVALID_GROUP_ID


class GroupIdNotFound(KafkaError):
    """There is no such group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroup(KafkaError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupSubscribedToTopic(KafkaError):
    """A member reads this topic: its offsets are in use."""

    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class InvalidSessionTimeout(KafkaError):
    """Outside of what `group.min.session.timeout.ms` and its maximum allow."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class InconsistentGroupProtocol(KafkaError):
    """No assignment strategy that all members know, or another type of group."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class GroupMaxSizeReached(KafkaError):
    """`group.max.size` members are in the group."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class UnknownMemberId(KafkaError):
    """The group has no such member, or not any more: it must join anew."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceId(KafkaError):
    """Another process has taken over the static member."""

    code = ErrorCode.FENCED_INSTANCE_ID


class IllegalGeneration(KafkaError):
    """The member is of another generation than the group."""

    code = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(KafkaError):
    """The member must join again, so that partitions can be shared out anew."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class MemberIdRequired(KafkaError):
    """A first join only gives the member its id, with which it joins again (KIP-394)."""

    code = ErrorCode.MEMBER_ID_REQUIRED

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class UnstableOffsetCommit(KafkaError):
    """An open transaction may move the offset: ask again once it has ended (KIP-447)."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class OffsetMetadataTooLarge(KafkaError):
    """The text beside an offset is longer than `offset.metadata.max.bytes`."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
