"""Why this broker refuses a request for a partition."""

from penstock.errors import ErrorCode, KafkaError


class UnknownTopicId(KafkaError):
    """No topic has this id."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class UnknownPartition(KafkaError):
    """A topic or partition that is unknown on this broker."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader epoch: it must refresh its metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader epoch than this broker."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class NotEnoughReplicas(KafkaError):
    """Fewer replicas are in sync than `min.insync.replicas` requires."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class StaleState(KafkaError):
    """A LeaderAndIsr with older epochs than this broker already knows."""

    code = ErrorCode.STALE_CONTROLLER_EPOCH
