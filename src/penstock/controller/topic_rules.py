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
        raise InvalidTopic("a topic's name cannot be empty")
    if name in {".", ".."}:
        raise InvalidTopic(f"a topic's name cannot be {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"a topic's name has at most {MAX_NAME_LENGTH} characters, this one has {len(name)}"
        )
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        raise InvalidTopic(f"{name!r} has characters other than ASCII letters, digits, . _ and -")


def check_new_name(name: str, existing: Iterable[str]) -> None:
    """Names that differ in `.` and `_` only share the names of their metrics."""
    check_name(name)
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{METADATA_TOPIC} cannot be created")
    spelled = name.replace(".", "_")
    for other in existing:
        if other == name:
            raise TopicAlreadyExists(f"topic {name} exists already")
        if other.replace(".", "_") == spelled:
            raise InvalidTopic(f"topic {name} collides with {other}: . and _ are one in metrics")


def new_partitions(asked: int, default: int) -> int:
    """How many partitions a new topic gets; -1 asks for the broker's default (KIP-464)."""
    if asked == 0 or asked < -1:
        raise InvalidPartitions(f"a topic cannot have {asked} partitions")
    return default if asked == -1 else asked


def more_partitions(current: int, asked: int) -> int:
    """How many to add: partitions never go, since their records would."""
    if asked <= current:
        raise InvalidPartitions(f"the topic has {current} partitions, {asked} are no more")
    return asked - current
