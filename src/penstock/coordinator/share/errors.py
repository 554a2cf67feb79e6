"""Errors that leaders of share-partitions get from the coordinator of their state."""

from penstock.errors import ErrorCode, KafkaError


class FencedStateEpoch(KafkaError):
    """The state was initialized again since: the offsets of the group were altered."""

    code = ErrorCode.FENCED_STATE_EPOCH


class FencedShareLeader(KafkaError):
    """Another broker leads the partition by now."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class NotInitialized(KafkaError):
    """The group coordinator has not initialized the state of this share-partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidShareState(KafkaError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST
