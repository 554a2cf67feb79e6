"""Errors that both coordinators answer with."""

from penstock.errors import ErrorCode, KafkaError


class NotCoordinator(KafkaError):
    """The partition that the key belongs to is not led by this broker."""

    code = ErrorCode.NOT_COORDINATOR


class CoordinatorNotAvailable(KafkaError):
    """The internal topic cannot be written now: it does not exist yet, or lacks replicas."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class CoordinatorLoading(KafkaError):
    """The state is still being loaded from the log."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorRecordTooLarge(KafkaError):
    """The batch exceeds the internal topic's `max.message.bytes`, or a name its field."""
