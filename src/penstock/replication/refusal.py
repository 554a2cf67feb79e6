"""What a partition refuses, and with which code."""

from penstock.errors import ErrorCode, KafkaError


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader: it must ask for metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader than this broker does."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class NotEnoughReplicas(KafkaError):
    """Fewer replicas are in sync than `min.insync.replicas` asks for."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class StaleState(KafkaError):
    """The controller's word is older than what this broker has heard before."""

    code = ErrorCode.STALE_CONTROLLER_EPOCH


class OffsetNotAvailable(KafkaError):
    """A new leader does not know yet how far its predecessor had committed (KIP-207)."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE
