"""Names of partition directories: `topic-0`, and Kafka's suffixes for copied, deleted, stray."""

import re
from enum import StrEnum

import msgspec

from penstock.types import TopicPartition

MAX_NAME = 255


class DirectoryRole(StrEnum):
    """The purpose of a partition directory."""

    CURRENT = ""
    FUTURE = "future"
    """Being copied from another log directory."""
    DELETE = "delete"
    STRAY = "stray"
    """The directory of a partition that this broker no longer has."""


class DirName(msgspec.Struct, frozen=True):
    """A partition directory's name, parsed."""

    topic_partition: TopicPartition
    role: DirectoryRole


_CURRENT = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]+)")
_MARKED = re.compile(
    r"(?P<topic>.+)-(?P<partition>[0-9]+)\.[0-9a-f]{32}-(?P<role>future|delete|stray)"
)


def parse_dir_name(name: str) -> DirName | None:
    """None if it is not a partition directory."""
    match = _MARKED.fullmatch(name) or _CURRENT.fullmatch(name)
    if match is None:
        return None
    found = match.groupdict()
    partition = TopicPartition(found["topic"], int(found["partition"]))
    return DirName(partition, DirectoryRole(found.get("role", "")))


def may_move(partition: TopicPartition) -> bool:
    """Whether the name of a copy's directory has room for the whole topic name.

    After a restart, only the directory's name identifies the topic.
    """
    return len(f"{partition}.{'0' * 32}-{DirectoryRole.FUTURE}") <= MAX_NAME


def dir_name(partition: TopicPartition, role: DirectoryRole, unique: str) -> str:
    """`unique`, 32 hexadecimal digits, distinguishes directories of the same partition.

    A long topic name is shortened, because a file name may have 255 bytes.
    """
    if role is DirectoryRole.CURRENT:
        return str(partition)
    tail = f"-{partition.partition}.{unique}-{role}"
    return partition.topic[: MAX_NAME - len(tail)] + tail
