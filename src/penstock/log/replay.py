"""Producer state from the log itself: a snapshot, and the batches that follow it."""

import logging
from collections.abc import Callable
from pathlib import Path

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.log.lookup import records_at
from penstock.log.producer_state import CompletedTxn, ProducerState
from penstock.log.segment import SNAPSHOT, Segment, offset_path
from penstock.log.segments import Segments
from penstock.record.batch import BatchHeader
from penstock.record.control import Marker, read_marker
from penstock.record.record import Record

logger = logging.getLogger(__name__)


def snapshot_offsets(files: Files, directory: Path) -> list[int]:
    """The offsets of the snapshot files, ascending."""
    names = files.names(directory)
    return sorted(
        int(name[: -len(SNAPSHOT)])
        for name in names
        if name.endswith(SNAPSHOT) and name[: -len(SNAPSHOT)].isdigit()
    )


def latest_state(
    files: Files, directory: Path, *, up_to: int, log_start_offset: int
) -> ProducerState:
    """What the newest good snapshot at or before `up_to` holds; damaged ones are removed."""
    for offset in reversed(snapshot_offsets(files, directory)):
        if log_start_offset <= offset <= up_to:
            path = offset_path(directory, offset, SNAPSHOT)
            try:
                return ProducerState.restore(files.read(path), offset, str(path))
            except CorruptFile as error:
                logger.warning("%s; the log is replayed instead", error)
                files.remove(path)
    return ProducerState(log_start_offset)


def replay(
    state: ProducerState,
    segments: Segments,
    end_offset: int,
    completed: Callable[[Segment, CompletedTxn], None] | None = None,
) -> None:
    """Bring `state` up to `end_offset`; `completed` hears of every transaction that ended."""
    start = state.map_end_offset
    if start >= end_offset:
        return
    for segment in segments.since(start):
        for position, header in segment.headers_from(max(start, segment.base_offset)):
            if header.base_offset >= end_offset:
                return
            if header.producer_id >= 0:
                control = records_at(segment, position, header) if header.is_control else []
                txn = note_batch(state, header, marker_of(control))
                if txn is not None and completed is not None:
                    completed(segment, txn)
    state.map_end_offset = end_offset


def marker_of(records: list[Record]) -> Marker | None:
    """The marker that a control batch holds; compaction may have left none."""
    return read_marker(records[0]) if records else None


def note_batch(
    state: ProducerState, header: BatchHeader, marker: Marker | None
) -> CompletedTxn | None:
    """Let `state` know of a producer's batch that is in the log."""
    if marker is None:
        state.append(header)
        return None
    return state.complete_transaction(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        committed=marker.committed,
        marker_offset=header.last_offset,
        timestamp=header.max_timestamp,
    )
