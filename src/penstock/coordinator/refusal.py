"""Why a coordinator does not do what it is asked, whatever it coordinates."""

from penstock.errors import ErrorCode, KafkaError


class NotCoordinator(KafkaError):
    """Another broker leads the partition that this key belongs to, or none does."""

    code = ErrorCode.NOT_COORDINATOR


class CoordinatorNotAvailable(KafkaError):
    """The internal topic cannot be written now: not there yet, or too few replicas."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class CoordinatorLoading(KafkaError):
    """The state is still being read from the log."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class InvalidRegularExpression(KafkaError):
    """No expression of RE2, or RE2 is not installed here."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class RecordTooLarge(KafkaError):
    """The internal topic's `max.message.bytes` does not allow for it."""
