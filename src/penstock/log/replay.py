"""Rebuilds producer state from the batches of the log."""

import logging
from collections.abc import Callable

from penstock.errors import KafkaError
from penstock.log import lookup
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, LogFile
from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES
from penstock.log.producer_state import CompletedTxn, ProducerState
from penstock.log.segment import Segment
from penstock.log.segments import Segments
from penstock.log.snapshots import latest_state
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import BatchHeader
from penstock.record.control import EndTransactionMarker, read_marker
from penstock.record.record import records
from penstock.types import Buffer

logger = logging.getLogger(__name__)


def replay(
    state: ProducerState,
    segments: Segments,
    end_offset: int,
    completed: Callable[[Segment, CompletedTxn], None] | None = None,
) -> None:
    """Bring `state` up to `end_offset`; `completed` is called with each transaction that ended."""
    start = state.map_end_offset
    if start >= end_offset:
        return
    for segment in segments.since(start):
        for position, header in segment.headers_from(max(start, segment.base_offset)):
            if header.base_offset >= end_offset:
                break
            if header.producer_id >= 0:
                marker = None
                if header.is_control:
                    batch = segment.file.read(position, header.size_bytes)
                    marker = marker_in(batch, header)
                txn = note_batch(state, header, marker)
                if txn is not None and completed is not None:
                    completed(segment, txn)
    state.map_end_offset = end_offset


def replay_readable(
    state: ProducerState,
    segments: Segments,
    end_offset: int,
    completed: Callable[[Segment, CompletedTxn], None] | None = None,
) -> None:
    """Like `replay`, but stop at a damaged batch: nothing is truncated, and its readers get an
    error.
    """
    try:
        replay(state, segments, end_offset, completed)
    except KafkaError as error:  # a damaged header or marker
        logger.error("%s: producer state is incomplete: %s", segments.directory, error)
        state.map_end_offset = end_offset


def marker_in(batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker that a control batch holds; compaction may have left none."""
    control = next(records(batch, header, DECOMPRESSED_LIMIT_BYTES), None)
    return None if control is None else read_marker(control)


def checked_marker(
    state: ProducerState, batch: Buffer, header: BatchHeader
) -> EndTransactionMarker | None:
    """The marker that a control batch holds; raises if it may not be appended."""
    marker = marker_in(batch, header)
    if marker is not None:
        state.check_marker(header.producer_id, header.producer_epoch, marker.coordinator_epoch)
    return marker


def note_batch(
    state: ProducerState,
    header: BatchHeader,
    marker: EndTransactionMarker | None,
    appended_ms: int | None = None,
) -> CompletedTxn | None:
    """Note a producer's batch that is in the log."""
    if marker is None:
        state.append(header, appended_ms)
        return None
    return state.complete_transaction(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        committed=marker.committed,
        marker_offset=header.last_offset,
        timestamp=header.max_timestamp,
        appended_ms=appended_ms,
    )


def index_aborted(segment: Segment, txn: CompletedTxn, file: LogFile | None = None) -> None:
    """Add an aborted transaction to the index of the segment where it ended."""
    if not txn.committed:
        aborted = AbortedTxn(
            txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
        )
        segment.txn_index.append(aborted, file)


def aborted_between(files: Files, segments: Segments, start: int, end: int) -> list[AbortedTxn]:
    """Aborted transactions with records in `[start, end)`; rebuilds damaged indexes of them."""
    try:
        return lookup.aborted_between(segments, start, end)
    except CorruptFile:
        heal_aborted(files, segments, segments.since(start))
        return lookup.aborted_between(segments, start, end)


def heal_aborted(files: Files, segments: Segments, suspects: list[Segment]) -> None:
    """Rebuild the damaged aborted-transaction indexes among those of `suspects`."""
    for segment in suspects:
        try:
            segment.txn_index.read()
        except CorruptFile as error:
            logger.warning("%s; it is rebuilt", error)
            segment.txn_index.remove()
            state = latest_state(
                files,
                segments.directory,
                up_to=segment.base_offset,
                log_start_offset=segments.first.base_offset,
            )
            end = segments.end_of(segment)
            replay(
                state, segments, segment.next_offset() if end is None else end, _ended_in(segment)
            )


def _ended_in(segment: Segment) -> Callable[[Segment, CompletedTxn], None]:
    def completed(where: Segment, txn: CompletedTxn) -> None:
        if where is segment:
            index_aborted(segment, txn)

    return completed
