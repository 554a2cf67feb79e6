"""What a directory written by Kafka holds, so that a broker can register it as its own."""

from collections import defaultdict
from pathlib import Path

import msgspec

from penstock.errors import ConfigError
from penstock.log.files import Files
from penstock.log.log_dir import CLEAN_SHUTDOWN, LOCK
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import decode_meta_properties
from penstock.log.naming import Role, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.types import uuid_text

IGNORED = "__cluster_metadata-0"
"""KRaft's own log: its contents are metadata, which this broker keeps elsewhere."""


class AdoptedTopic(msgspec.Struct, frozen=True):
    """A topic by name and id, with those of its partitions that the directory has."""

    name: str
    topic_id: str
    partitions: list[int]


class AdoptedTopics(msgspec.Struct, frozen=True):
    """All topics of a directory, and whose it was."""

    cluster_id: str | None
    broker_id: int | None
    clean_shutdown: bool
    topics: list[AdoptedTopic]
    ignored: list[str]


class NotAdoptable(ConfigError):
    """A directory that no broker can take over as it is."""


def adopted_topics(files: Files, directory: Path) -> AdoptedTopics:
    """Reads `partition.metadata` of every partition; changes nothing.

    `NotAdoptable` when the directory is no broker's or contradicts itself, `CorruptFile` when one
    of its small files is damaged.
    """
    meta = directory / META_PROPERTIES
    if not files.is_dir(directory) or not files.exists(meta):
        raise NotAdoptable(f"{directory} is no log directory: it has no {META_PROPERTIES}")
    _refuse_if_in_use(files, directory)
    identity = decode_meta_properties(files.read(meta), str(meta))
    partitions: dict[tuple[str, str], list[int]] = defaultdict(list)
    ignored = []
    for name in files.names(directory):
        if not files.is_dir(directory / name):
            continue
        parsed = parse_dir_name(name)
        if name == IGNORED or parsed is None or parsed.role is not Role.CURRENT:
            ignored.append(name)
            continue
        topic, number = parsed.topic_partition
        partitions[topic, _topic_id(files, directory / name)].append(number)
    topics = [
        AdoptedTopic(topic, topic_id, sorted(numbers))
        for (topic, topic_id), numbers in sorted(partitions.items())
    ]
    _refuse_if_ambiguous(topics)
    return AdoptedTopics(
        identity.cluster_id,
        identity.broker_id,
        files.exists(directory / CLEAN_SHUTDOWN),
        topics,
        ignored,
    )


def _refuse_if_in_use(files: Files, directory: Path) -> None:
    if files.exists(directory / LOCK):
        release = files.lock(directory / LOCK)
        release()


def _topic_id(files: Files, partition: Path) -> str:
    path = partition / PARTITION_METADATA
    if not files.exists(path):
        raise NotAdoptable(f"{path} is missing: the topic was written before it had an id")
    return uuid_text(decode_partition_metadata(files.read(path), str(path)))


def _refuse_if_ambiguous(topics: list[AdoptedTopic]) -> None:
    by_name: dict[str, AdoptedTopic] = {}
    for topic in topics:
        other = by_name.setdefault(topic.name, topic)
        if other is not topic:
            raise NotAdoptable(
                f"partitions of {topic.name} have two topic ids: {other.topic_id} "
                f"({other.partitions}) and {topic.topic_id} ({topic.partitions})"
            )
