"""Lists what log directories contain, before a broker changes them."""

import logging
from collections.abc import Iterable
from pathlib import Path
from random import Random

from msgspec import Struct

from penstock.errors import StorageError
from penstock.log.corrupt import CorruptFile
from penstock.log.epochs import EPOCHS, LeaderEpochs
from penstock.log.files import DirectoryLocked, Files
from penstock.log.leftovers import base_offsets
from penstock.log.log_dir import LogDir
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, decode_meta_properties
from penstock.log.naming import DirectoryRole, dir_name, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.log.scan import headers
from penstock.log.segment_files import LOG, offset_path
from penstock.record.batch import CorruptBatch
from penstock.types import TopicPartition, Uuid, random_uuid

logger = logging.getLogger(__name__)

IGNORED = {"lost+found", "__cluster_metadata-0"}


class FoundLog(Struct, frozen=True):
    """A partition's directory; it has no topic id if a Kafka before topic ids wrote it."""

    path: Path
    partition: TopicPartition
    topic_id: Uuid | None = None
    last_epoch: int = -1
    """Its last leader epoch, if the function `last_epoch` was called for it."""


class FoundDirectory(Struct, frozen=True):
    """A log directory; `identity` is None for one that no broker has used yet."""

    path: Path
    identity: MetaProperties | None = None
    logs: tuple[FoundLog, ...] = ()
    others: tuple[str, ...] = ()
    """Subdirectories that do not belong to a partition."""
    is_readable: bool = True
    is_locked: bool = False
    """Another process works in it."""


def scan_log_dirs(files: Files, log_dirs: Iterable[LogDir]) -> list[FoundDirectory]:
    """Lock the directories and list their contents; nothing is changed."""
    found = []
    for log_dir in log_dirs:
        try:
            with log_dir:
                log_dir.owner.lock()
        except DirectoryLocked:
            found.append(FoundDirectory(log_dir.path, is_locked=True))
        except StorageError:
            found.append(FoundDirectory(log_dir.path, is_readable=False))
        else:
            found.append(scan_log_dir(files, log_dir.path))
    return found


def set_aside(files: Files, log: FoundLog, why: str, chance: Random) -> None:
    """Keep a log that may not be served, as `LogStore.set_aside` does once it is loaded."""
    stray = log.path.with_name(
        dir_name(log.partition, DirectoryRole.STRAY, random_uuid(chance).hex)
    )
    files.rename(log.path, stray)
    files.sync_dir(stray.parent)
    logger.warning("partition %s %s; its log is kept as %s", log.partition, why, stray)


def scan_log_dir(files: Files, path: Path) -> FoundDirectory:
    """The contents of one directory. `CorruptFile` if `meta.properties` is damaged: the owner is
    unknown.
    """
    try:
        if not files.exists(path):
            return FoundDirectory(path)
        meta = path / META_PROPERTIES
        identity = (
            decode_meta_properties(files.read(meta), str(meta)) if files.exists(meta) else None
        )
        logs, others = [], []
        for name in files.names(path):
            if name in IGNORED or not files.is_dir(path / name):
                continue
            found = parse_dir_name(name)
            if found is None:
                others.append(name)
            elif found.role is DirectoryRole.CURRENT:
                topic_id = _topic_id(files, path / name)
                logs.append(FoundLog(path / name, found.topic_partition, topic_id))
    except CorruptFile:
        raise
    except StorageError:
        return FoundDirectory(path, is_readable=False)
    return FoundDirectory(path, identity, tuple(logs), tuple(others))


def last_epoch(files: Files, log: FoundLog) -> int:
    """The last leader epoch of a log; -1 if it has none. Damage is left to its recovery."""
    try:
        return stated_epoch(files, log.path)
    except StorageError:
        return -1


def stated_epoch(files: Files, partition: Path) -> int:
    """The last leader epoch of the log in this directory; `CorruptFile` if its list is damaged.

    The list is written by flushes. After a crash it may lack the last epochs, which the last
    batches have.
    """
    path = partition / EPOCHS
    listed = LeaderEpochs.decode(files.read(path), str(path)).latest if files.exists(path) else None
    latest = -1 if listed is None else listed
    if files.exists(partition.parent / CLEAN_SHUTDOWN):
        return latest
    return max(latest, _last_written_epoch(files, partition))


def _last_written_epoch(files: Files, partition: Path) -> int:
    """The largest leader epoch in the last segment that has batches."""
    for base in reversed(base_offsets(files.names(partition))):
        file = files.open(offset_path(partition, base, LOG))
        latest = None
        try:
            for _, header in headers(file, 0, file.size):
                latest = max(header.leader_epoch, -1 if latest is None else latest)
        except CorruptBatch:
            pass  # the last write was torn
        finally:
            file.close()
        if latest is not None:
            return latest
    return -1


def _topic_id(files: Files, directory: Path) -> Uuid | None:
    path = directory / PARTITION_METADATA
    try:
        return decode_partition_metadata(files.read(path)) if files.exists(path) else None
    except CorruptFile:
        return None
