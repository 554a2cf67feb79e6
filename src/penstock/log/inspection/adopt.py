"""What a directory written by Kafka holds, so that a broker can register it as its own."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.config.setting import settings
from penstock.config.topic import TopicConfig
from penstock.errors import ConfigError
from penstock.log.epochs import EPOCHS, LeaderEpochs
from penstock.log.files import Files
from penstock.log.inspection.kraft import FOLDER as KRAFT_METADATA
from penstock.log.inspection.kraft import topic_configs
from penstock.log.log_dir import CLEAN_SHUTDOWN, LOCK
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, decode_meta_properties
from penstock.log.naming import Role, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.types import uuid_text

T = TypeVar("T", int, str)
KNOWN = settings(TopicConfig)


class AdoptedPartition(msgspec.Struct, frozen=True):
    """A partition's number, and the last leader epoch that wrote to it; -1: none did."""

    partition: int
    last_epoch: int


class AdoptedTopic(msgspec.Struct, frozen=True):
    """A topic by name and id, with its partitions, and its settings where KRaft kept them."""

    name: str
    topic_id: str
    partitions: list[AdoptedPartition]
    configs: dict[str, str]


class AdoptedTopics(msgspec.Struct, frozen=True):
    """All topics of a broker's log directories, and whose they were."""

    cluster_id: str | None
    broker_id: int | None
    clean_shutdown: bool
    topics: list[AdoptedTopic]
    ignored: list[str]
    """Directories that are no topic's, and settings that no topic of ours has."""


class NotAdoptable(ConfigError):
    """A directory that cannot be adopted as it is."""


def adopted_topics(files: Files, *directories: Path) -> AdoptedTopics:
    """What the log directories of one broker hold together; changes nothing.

    `NotAdoptable` when one is no broker's or they contradict themselves, `CorruptFile` when one
    of their small files is damaged.
    """
    identities = [_identity(files, directory) for directory in directories]
    partitions: dict[tuple[str, str], dict[int, AdoptedPartition]] = defaultdict(dict)
    ignored = []
    for path in _folders(files, directories):
        parsed = parse_dir_name(path.name)
        if path.name == KRAFT_METADATA or parsed is None or parsed.role is not Role.CURRENT:
            ignored.append(path.name)
            continue
        topic, number = parsed.topic_partition
        together = partitions[topic, _topic_id(files, path)]
        if number in together:
            raise NotAdoptable(f"{path.name} is in two of the directories")
        together[number] = AdoptedPartition(number, _last_epoch(files, path))
    configs = _configs(files, directories)
    topics = [
        AdoptedTopic(
            topic,
            topic_id,
            [together[number] for number in sorted(together)],
            {name: value for name, value in configs.get(topic, {}).items() if name in KNOWN},
        )
        for (topic, topic_id), together in sorted(partitions.items())
    ]
    for each in topics:
        ignored += [
            f"{each.name}: {name}" for name in configs.get(each.name, {}) if name not in KNOWN
        ]
    _refuse_if_ambiguous(topics)
    for each in topics:
        _refuse_if_incomplete(each)
    return AdoptedTopics(
        _common("cluster", [each.cluster_id for each in identities]),
        _common("broker", [each.broker_id for each in identities]),
        all(files.exists(directory / CLEAN_SHUTDOWN) for directory in directories),
        topics,
        ignored,
    )


def _identity(files: Files, directory: Path) -> MetaProperties:
    meta = directory / META_PROPERTIES
    if not files.is_dir(directory) or not files.exists(meta):
        raise NotAdoptable(f"{directory} is no log directory: it has no {META_PROPERTIES}")
    _refuse_if_in_use(files, directory)
    return decode_meta_properties(files.read(meta), str(meta))


def _configs(files: Files, directories: Iterable[Path]) -> Mapping[str, Mapping[str, str]]:
    """KRaft keeps its log in one of a broker's directories."""
    found = (topic_configs(files, directory) for directory in directories)
    return next((configs for configs in found if configs), {})


def _common(what: str, stated: Sequence[T | None]) -> T | None:
    """The one value that the directories agree on, if any has one."""
    values = {value for value in stated if value is not None}
    if len(values) > 1:
        listed = ", ".join(sorted(map(str, values)))
        raise NotAdoptable(f"the directories belong to more than one {what}: {listed}")
    return next(iter(values), None)


def _folders(files: Files, directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        for name in files.names(directory):
            if files.is_dir(directory / name):
                yield directory / name


def _refuse_if_in_use(files: Files, directory: Path) -> None:
    if files.exists(directory / LOCK):
        release = files.lock(directory / LOCK)
        release()


def _topic_id(files: Files, partition: Path) -> str:
    path = partition / PARTITION_METADATA
    if not files.exists(path):
        raise NotAdoptable(f"{path} is missing: the topic was written before it had an id")
    return uuid_text(decode_partition_metadata(files.read(path), str(path)))


def _last_epoch(files: Files, partition: Path) -> int:
    path = partition / EPOCHS
    latest = LeaderEpochs.decode(files.read(path), str(path)).latest if files.exists(path) else None
    return -1 if latest is None else latest


def _refuse_if_ambiguous(topics: list[AdoptedTopic]) -> None:
    by_name: dict[str, AdoptedTopic] = {}
    for topic in topics:
        other = by_name.setdefault(topic.name, topic)
        if other is not topic:
            raise NotAdoptable(
                f"partitions of {topic.name} have two topic ids: {other.topic_id} "
                f"({_numbers(other)}) and {topic.topic_id} ({_numbers(topic)})"
            )


def _refuse_if_incomplete(topic: AdoptedTopic) -> None:
    """Keys would go to other partitions than before if some were left out."""
    if topic.partitions[-1].partition != len(topic.partitions) - 1:
        raise NotAdoptable(
            f"{topic.name} has more partitions than {_numbers(topic)}: "
            "name all log directories of the broker, which must have every partition"
        )


def _numbers(topic: AdoptedTopic) -> str:
    return ",".join(str(each.partition) for each in topic.partitions)
