"""Lists the topics in a directory written by Kafka, for a broker that registers them as its own."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from penstock.config.setting import settings
from penstock.config.topic import TopicConfig
from penstock.errors import ConfigError
from penstock.log.files import Files
from penstock.log.found import stated_epoch
from penstock.log.inspection.kraft import FOLDER as KRAFT_METADATA
from penstock.log.inspection.kraft import topic_configs
from penstock.log.inspection.verify import WORKER
from penstock.log.leftovers import base_offsets
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN, LOCK
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, decode_meta_properties
from penstock.log.naming import DirectoryRole, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.log.scan import checked
from penstock.log.segment_files import LOG, offset_path
from penstock.record.batch import CorruptBatch
from penstock.types import uuid_text

T = TypeVar("T", int, str)
KNOWN = settings(TopicConfig)
KEEPS_ALL = {"retention.ms": "-1"}
"""For topics whose settings are lost: the default would delete records older than a week."""


class AdoptedPartition(msgspec.Struct, frozen=True):
    """A partition's number, and the last leader epoch that wrote to it; -1: none did."""

    partition: int
    last_epoch: int
    replicas: list[int]
    """The brokers that have it, by `broker.id`; the first one's log goes furthest."""


class AdoptedTopic(msgspec.Struct, frozen=True):
    """A topic by name and id, with its partitions and settings: KRaft's, or else `KEEPS_ALL`."""

    name: str
    topic_id: str
    partitions: list[AdoptedPartition]
    configs: dict[str, str]


class AdoptedTopics(msgspec.Struct, frozen=True):
    """All topics of a broker's log directories, and the cluster and broker they belonged to."""

    cluster_id: str | None
    broker_id: int | None
    """The first worker's, if there are several."""
    clean_shutdown: bool
    topics: list[AdoptedTopic]
    ignored: list[str]
    """Directories of no topic, and topic settings that Penstock does not have."""
    broker_ids: list[int]
    are_workers: bool
    log_dirs: dict[str, str]
    """The paths of the directories, by `directory.id`, or by path if one has none."""


class NotAdoptable(ConfigError):
    """A directory that cannot be adopted as it is."""


def adopted_topics(files: Files, *directories: Path) -> AdoptedTopics:
    """The topics in all log directories of one broker, or of workers; changes nothing.

    `NotAdoptable` if one is not a broker's or they contradict themselves, `CorruptFile` when one of
    their small files is damaged.
    """
    identities = [_identity(files, directory) for directory in directories]
    cluster_id = _common("cluster", [each.cluster_id for each in identities])
    are_workers = all(each.absolute().name.startswith(WORKER) for each in directories)
    if not are_workers:
        _common("broker", [each.broker_id for each in identities])
    partitions: dict[tuple[str, str], dict[int, list[_Log]]] = defaultdict(dict)
    ignored = []
    for owner, path in _folders(files, directories, identities):
        parsed = parse_dir_name(path.name)
        if (
            path.name == KRAFT_METADATA
            or parsed is None
            or parsed.role is not DirectoryRole.CURRENT
        ):
            ignored.append(path.name)
            continue
        topic, number = parsed.topic_partition
        logs = partitions[topic, _topic_id(files, path)].setdefault(number, [])
        if any(each.broker_id == owner for each in logs):
            raise NotAdoptable(f"{path.name} is in two of the directories")
        logs.append(_Log(owner, path, stated_epoch(files, path)))
    configs = _configs(files, directories)
    default = {} if _has_settings(files, directories) else KEEPS_ALL
    topics = [
        AdoptedTopic(
            topic,
            topic_id,
            [_partition(files, number, together[number]) for number in sorted(together)],
            {name: value for name, value in configs.get(topic, default).items() if name in KNOWN},
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
    brokers = list(dict.fromkeys(i.broker_id for i in identities if i.broker_id is not None))
    return AdoptedTopics(
        cluster_id,
        next(iter(brokers), None),
        all(files.exists(directory / CLEAN_SHUTDOWN) for directory in directories),
        topics,
        ignored,
        brokers,
        are_workers,
        _log_dirs(directories, identities),
    )


def _log_dirs(directories: Sequence[Path], identities: Sequence[MetaProperties]) -> dict[str, str]:
    paths = [str(each.absolute()) for each in directories]
    return {
        identity.directory_id or path: path
        for path, identity in zip(paths, identities, strict=True)
    }


class _Log(NamedTuple):
    """A replica: its broker, if `meta.properties` names one, and its directory."""

    broker_id: int | None
    path: Path
    last_epoch: int


def _partition(files: Files, number: int, logs: Sequence[_Log]) -> AdoptedPartition:
    """The partition; its first replica has the log of the latest epoch, and the longest of these.

    The leader and the ISR were in the metadata, which is lost. All that they committed is in that
    log.
    """
    if len(logs) > 1:
        logs = sorted(logs, key=lambda each: (-each.last_epoch, -_end_offset(files, each.path)))
    replicas = [each.broker_id for each in logs if each.broker_id is not None]
    return AdoptedPartition(number, logs[0].last_epoch, replicas)


def _end_offset(files: Files, partition: Path) -> int:
    """The end of the last whole batch, as recovery would find it."""
    bases = base_offsets(files.names(partition))
    if not bases:
        return 0
    end = max(bases)
    file = files.open(offset_path(partition, end, LOG))
    try:
        for _, header in checked(file, file.size):
            end = header.base_offset + header.last_offset_delta + 1
    except CorruptBatch:
        pass  # not flushed when the machine went down
    finally:
        file.close()
    return end


def _identity(files: Files, directory: Path) -> MetaProperties:
    meta = directory / META_PROPERTIES
    if not files.is_dir(directory) or not files.exists(meta):
        inside = [directory / name for name in _names(files, directory)]
        found = [each for each in sorted(inside) if files.exists(each / META_PROPERTIES)]
        hint = f"; name {', '.join(map(str, found))}" if found else ""
        if any(each.name.startswith(WORKER) for each in inside):
            hint = f"; its workers have: name {directory / WORKER}0 and so on"
        raise NotAdoptable(f"{directory} is not a log directory: it has no {META_PROPERTIES}{hint}")
    _refuse_if_in_use(files, directory)
    return decode_meta_properties(files.read(meta), str(meta))


def _names(files: Files, directory: Path) -> list[str]:
    return files.names(directory) if files.is_dir(directory) else []


def _configs(files: Files, directories: Iterable[Path]) -> Mapping[str, Mapping[str, str]]:
    """The settings of each topic. KRaft keeps its log in one of a broker's directories."""
    found = (topic_configs(files, directory) for directory in directories)
    return next((configs for configs in found if configs), {})


def _has_settings(files: Files, directories: Iterable[Path]) -> bool:
    return any(files.is_dir(directory / KRAFT_METADATA) for directory in directories)


def _common(what: str, stated: Sequence[T | None]) -> T | None:
    """The one value that the directories agree on, if any has one."""
    values = {value for value in stated if value is not None}
    if len(values) > 1:
        listed = ", ".join(sorted(map(str, values)))
        raise NotAdoptable(f"the directories belong to more than one {what}: {listed}")
    return next(iter(values), None)


def _folders(
    files: Files, directories: Iterable[Path], identities: Iterable[MetaProperties]
) -> Iterator[tuple[int | None, Path]]:
    """Each subdirectory, with its broker."""
    for directory, identity in zip(directories, identities, strict=True):
        for name in files.names(directory):
            if files.is_dir(directory / name):
                yield identity.broker_id, directory / name


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
                f"({_numbers(other)}) and {topic.topic_id} ({_numbers(topic)})"
            )


def _refuse_if_incomplete(topic: AdoptedTopic) -> None:
    """Refuse a topic that lacks partitions: keys would go to other partitions than before."""
    if topic.partitions[-1].partition != len(topic.partitions) - 1:
        raise NotAdoptable(
            f"{topic.name} has more partitions than {_numbers(topic)}: "
            "name all log directories of the broker, which must have every partition"
        )


def _numbers(topic: AdoptedTopic) -> str:
    return ",".join(str(each.partition) for each in topic.partitions)
