"""Rules for topic names and partition counts. Pure."""

from collections.abc import Iterable

from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.metadata.topic_names import LEGAL_CHARACTERS, MAX_NAME_LENGTH

MAX_NEW_PARTITIONS = 10_000
"""The limit of one request, over all its topics."""

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's metadata log: a directory of this name is never that of a topic."""


class InvalidTopic(KafkaError):
    """A name that no topic can have."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAlreadyExists(KafkaError):
    """The topic exists, or its deletion is not finished."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class TopicDeletionDisabled(KafkaError):
    """`delete.topic.enable` is false."""

    code = ErrorCode.TOPIC_DELETION_DISABLED


class InvalidPartitions(KafkaError):
    """A number of partitions that a topic cannot have."""

    code = ErrorCode.INVALID_PARTITIONS


class PolicyViolation(KafkaError):
    """The request exceeds a limit on one request."""

    code = ErrorCode.POLICY_VIOLATION


class UnknownTopic(KafkaError):
    """No topic of this name."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_name(name: str) -> None:
    if not name:
        raise InvalidTopic("Topic name is invalid: the empty string is not allowed")
    if name in {".", ".."}:
        raise InvalidTopic(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_NAME_LENGTH}"
        )
    if not LEGAL_CHARACTERS.fullmatch(name):
        raise InvalidTopic(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )


def check_new_name(name: str, existing: Iterable[str]) -> None:
    """Refuses names that differ from another only in `.` and `_`: their metrics would collide."""
    check_name(name)
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{METADATA_TOPIC} cannot be created")
    spelled = name.replace(".", "_")
    for other in existing:
        if other == name:
            raise TopicAlreadyExists(f"Topic '{name}' already exists.")
        if other.replace(".", "_") == spelled:
            raise InvalidTopic(f"Topic '{name}' collides with existing topic: {other}")


def new_partitions(asked: int, default: int) -> int:
    """How many partitions a new topic gets; -1 requests the broker's default (KIP-464)."""
    if asked == 0 or asked < -1:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    return default if asked == -1 else asked


def more_partitions(topic: str, current: int, asked: int) -> int:
    """The number of partitions to add. They are never removed: their records would be lost."""
    if asked == current:
        raise InvalidPartitions(f"Topic already has {current} partition(s).")
    if asked < current:
        raise InvalidPartitions(
            f"The topic {topic} currently has {current} partition(s); {asked} would not be an "
            "increase."
        )
    return asked - current
