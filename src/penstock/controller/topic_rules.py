"""What a topic may be called, and how large it may be. Pure."""

import re
from collections.abc import Iterable

from penstock.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
"""With `-` and a partition number, and `.<32 digits>-delete` when deleted, still a file name."""

MAX_NEW_PARTITIONS = 10_000
"""In one request, over all its topics."""

METADATA_TOPIC = "__cluster_metadata"
"""Kafka's own log of metadata: a directory of that name is never a topic's."""


class InvalidTopic(KafkaError):
    """A name that no topic can have."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAlreadyExists(KafkaError):
    """Or it is being deleted, and its name is not free yet."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    """A number of partitions that a topic cannot have."""

    code = ErrorCode.INVALID_PARTITIONS


class PolicyViolation(KafkaError):
    """More than one request may ask for."""

    code = ErrorCode.POLICY_VIOLATION


class InvalidRequest(KafkaError):
    """Fields that contradict each other."""

    code = ErrorCode.INVALID_REQUEST


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
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        raise InvalidTopic(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )


def check_new_name(name: str, existing: Iterable[str]) -> None:
    """Names that differ in `.` and `_` only share the names of their metrics."""
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
    """How many partitions a new topic gets; -1 asks for the broker's default (KIP-464)."""
    if asked == 0 or asked < -1:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    return default if asked == -1 else asked


def more_partitions(topic: str, current: int, asked: int) -> int:
    """How many to add: partitions never go, since their records would."""
    if asked == current:
        raise InvalidPartitions(f"Topic already has {current} partition(s).")
    if asked < current:
        raise InvalidPartitions(
            f"The topic {topic} currently has {current} partition(s); {asked} would not be an "
            "increase."
        )
    return asked - current
