"""Carries out a resize on disk: whole partitions move to another worker by a rename.

Every step can be repeated, so after a crash at any moment the next start completes it. Only rows of
checkpoint files are copied, and they are on disk before their partition moves.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.local.workers.layout import PREFIX, Move, Resize, folder
from penstock.log import checkpoint
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, replace
from penstock.log.log_dir import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.log.log_dir_owner import BOOT_ID, CLEAN_SHUTDOWN, LOCK, UNCLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.log.naming import DirectoryRole, dir_name, parse_dir_name
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)

CHECKPOINTS = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER_OFFSETS)
FILES = (META_PROPERTIES, *CHECKPOINTS, CLEAN_SHUTDOWN, UNCLEAN_SHUTDOWN, BOOT_ID)
"""The broker's files in a log directory, beside the partitions."""


def carry_out(files: Files, log_dir: Path, workers: int, resize: Resize, unique: str) -> None:
    """Resize one log directory, which is laid out for `workers`. `unique` is part of names
    of stray logs.
    """
    if resize.workers == 1 and workers == 1:
        return
    for worker in range(max(workers, resize.workers)):
        _make_folder(files, log_dir, folder(log_dir, worker), resize, worker)
    if workers == 1:
        _move_all(files, log_dir, folder(log_dir, 0))
    by_way: defaultdict[tuple[int, int], list[Move]] = defaultdict(list)
    for move in resize.moves:
        by_way[move.source, move.target].append(move)
    for (source, target), moves in sorted(by_way.items()):
        partitions = [TopicPartition(each.topic, each.partition) for each in moves]
        _move(files, folder(log_dir, source), folder(log_dir, target), partitions, unique)
    # also keeps partitions that the metadata does not know
    for worker in range(resize.workers, workers):
        gone = folder(log_dir, worker)
        _move(files, gone, folder(log_dir, 0), _partitions(files, gone), unique)
        _remove(files, gone)
    if resize.workers == 1:
        _move_all(files, folder(log_dir, 0), log_dir)
        _remove(files, folder(log_dir, 0))


def _make_folder(files: Files, log_dir: Path, path: Path, resize: Resize, worker: int) -> None:
    """Create a worker's folder as cleanly shut down. Its meta.properties is written last."""
    files.make_dir(path)
    if files.exists(path / META_PROPERTIES):
        return
    if worker:
        replace(files, path / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
    if worker < len(resize.broker_ids):
        stated = log_dir / META_PROPERTIES
        cluster = None
        if files.exists(stated):
            cluster = decode_meta_properties(files.read(stated), str(stated)).cluster_id
        mine = MetaProperties(resize.broker_ids[worker], cluster)
        replace(files, path / META_PROPERTIES, encode_meta_properties(mine))
    files.sync_dir(log_dir)


def _move_all(files: Files, source: Path, target: Path) -> None:
    """Move a broker's whole log directory."""
    names = [each for each in files.names(source) if not each.startswith(PREFIX)]
    for name in names:
        is_partition = files.is_dir(source / name) and parse_dir_name(name) is not None
        if is_partition or name in FILES:
            files.rename(source / name, target / name)
    files.sync_dir(target)
    files.sync_dir(source)


def _move(
    files: Files, source: Path, target: Path, partitions: Sequence[TopicPartition], unique: str
) -> None:
    if not partitions or not files.exists(source):
        return
    wanted = set(partitions)
    names = {
        name: found
        for name in files.names(source)
        if (found := parse_dir_name(name)) is not None
        and found.topic_partition in wanted
        and files.is_dir(source / name)
    }
    if not names:
        return  # all have moved already, and their rows with them
    collisions = {name for name in names if files.exists(target / name)}
    moved = {
        each.topic_partition
        for name, each in names.items()
        if each.role is DirectoryRole.CURRENT and name not in collisions
    }
    _pass_on_state(files, source, target)
    for name in CHECKPOINTS:
        _pass_on_rows(files, source / name, target / name, moved)
    for name, found in names.items():
        new = target / name
        if name in collisions:  # of a deleted topic with the same name
            new = target / dir_name(found.topic_partition, DirectoryRole.STRAY, unique)
            logger.warning("%s is there already; %s is kept as %s", target / name, name, new)
        files.rename(source / name, new)
    files.sync_dir(target)
    files.sync_dir(source)


def _pass_on_state(files: Files, source: Path, target: Path) -> None:
    """Make the target as unclean as the source, so that its logs are checked when loaded."""
    if files.exists(source / UNCLEAN_SHUTDOWN):
        replace(files, target / UNCLEAN_SHUTDOWN, b"")
    if files.exists(source / CLEAN_SHUTDOWN):
        return
    if files.exists(source / BOOT_ID):
        replace(files, target / BOOT_ID, files.read(source / BOOT_ID))
    files.remove(target / CLEAN_SHUTDOWN)
    files.sync_dir(target)


def _pass_on_rows(files: Files, source: Path, target: Path, moved: set[TopicPartition]) -> None:
    """A row that the target has of a moved partition is of a former log of its name."""
    known = _rows(files, target)
    kept = {each: at for each, at in known.items() if each not in moved}
    passed = {each: at for each, at in _rows(files, source).items() if each in moved}
    if kept | passed != known:
        checkpoint.write_offsets(files, target, kept | passed)


def _rows(files: Files, path: Path) -> dict[TopicPartition, int]:
    try:
        return checkpoint.read_offsets(files, path)
    except CorruptFile as error:
        logger.warning("%s; it is ignored", error)
        return {}


def _partitions(files: Files, path: Path) -> list[TopicPartition]:
    if not files.exists(path):
        return []
    found = (parse_dir_name(name) for name in files.names(path) if files.is_dir(path / name))
    return [each.topic_partition for each in found if each is not None]


def _remove(files: Files, path: Path) -> None:
    """Remove a folder that has only a broker's files left."""
    if not files.exists(path):
        return
    for name in files.names(path):
        if not files.is_dir(path / name):
            files.remove(path / name)
    files.remove_dir(path)
    files.sync_dir(path.parent)


def occupied(files: Files, log_dirs: Iterable[Path], workers: Iterable[int]) -> Path | None:
    """The directory of any partition of these workers; None if there is none."""
    for worker in workers:
        for log_dir in log_dirs:
            path = folder(log_dir, worker)
            for each in _partitions(files, path):
                return path / str(each)
    return None


def lock_names(log_dirs: Iterable[Path], workers: int) -> list[Path]:
    """The lock files that another broker would hold."""
    found = []
    for log_dir in log_dirs:
        found.append(log_dir / LOCK)
        if workers > 1:
            found += [folder(log_dir, each) / LOCK for each in range(workers)]
    return found
