"""The producer snapshots in a partition's directory, one for each segment and one at the end."""

import logging
from pathlib import Path

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, write
from penstock.log.leftovers import offset_of
from penstock.log.producer_state import ProducerState
from penstock.log.segment_files import SNAPSHOT, offset_path

logger = logging.getLogger(__name__)


def snapshot_offsets(files: Files, directory: Path) -> list[int]:
    """The offsets of the snapshot files, ascending."""
    found = (offset_of(name) for name in files.names(directory) if name.endswith(SNAPSHOT))
    return sorted(offset for offset in found if offset is not None)


def write_snapshot(files: Files, directory: Path, state: ProducerState) -> str:
    """Write the state; returns the file's name. Not synced: its CRC shows a torn write."""
    path = offset_path(directory, state.map_end_offset, SNAPSHOT)
    write(files, path, state.snapshot())
    return path.name


def latest_state(
    files: Files, directory: Path, *, up_to: int, log_start_offset: int
) -> ProducerState:
    """The state of the newest good snapshot at or before `up_to`; damaged ones are removed."""
    for offset in reversed(snapshot_offsets(files, directory)):
        if log_start_offset <= offset <= up_to:
            path = offset_path(directory, offset, SNAPSHOT)
            try:
                return ProducerState.restore(files.read(path), offset, str(path))
            except CorruptFile as error:
                logger.warning("%s; the log is replayed instead", error)
                files.remove(path)
    return ProducerState(log_start_offset)


def remove_snapshots(files: Files, directory: Path, *, after: int) -> None:
    """Remove the snapshots of truncated records."""
    for offset in snapshot_offsets(files, directory):
        if offset > after:
            files.remove(offset_path(directory, offset, SNAPSHOT))


def remove_stray_snapshots(
    files: Files, directory: Path, base_offsets: set[int], up_to: int
) -> None:
    """Keep the snapshots at segment boundaries and the newest; none after `up_to`."""
    offsets = snapshot_offsets(files, directory)
    newest = max((offset for offset in offsets if offset <= up_to), default=None)
    for offset in offsets:
        if offset > up_to or (offset != newest and offset not in base_offsets):
            files.remove(offset_path(directory, offset, SNAPSHOT))
