"""Loads one log: by its checkpoints after a clean stop, by its batches after a crash."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.config.topic import TopicConfig
from penstock.counted import counted
from penstock.log.corrupt import CorruptFile
from penstock.log.epochs import EPOCHS, LeaderEpochs
from penstock.log.files import Files
from penstock.log.leftovers import base_offsets, resolve_leftovers
from penstock.log.loaded_state import LoadedState
from penstock.log.log_dir import LogDir
from penstock.log.old_format import refuse_old_format
from penstock.log.open_segments import OpenSegments
from penstock.log.order import in_order
from penstock.log.partition_log import PartitionLog
from penstock.log.producer_state import CompletedTxn, ProducerState
from penstock.log.replay import index_aborted, replay_readable
from penstock.log.scan import checked
from penstock.log.segment import Segment
from penstock.log.segment_files import LOG, offset_path
from penstock.log.segment_indexes import MAX_RELATIVE_OFFSET, IndexLimits
from penstock.log.segments import Segments
from penstock.log.snapshots import latest_state, remove_stray_snapshots
from penstock.record.batch import BatchHeader, CorruptBatch
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


def load_log(
    files: Files,
    log_dir: LogDir,
    path: Path,
    topic_partition: TopicPartition,
    config: TopicConfig,
    *,
    open_segments: OpenSegments,
    recovery_point: int,
    log_start_offset: int,
    clean: bool,
    now_ms: int,
) -> PartitionLog:
    """The log in `path`, or a new and empty one if there is no such directory.

    `clean`: the last stop left everything whole, so that no batch need be checked. If that turns
    out to be untrue, the log is recovered as after a crash. The caller must make the recovery point
    durable before anything is appended.
    """
    if not files.exists(path):
        return new_log(files, log_dir, path, topic_partition, config, open_segments, now_ms)
    resolve_leftovers(files, path)
    bases = base_offsets(files.names(path))
    fresh = not bases
    if fresh:
        files.open(offset_path(path, log_start_offset, LOG), create=True).close()
    segments = Segments(
        files,
        path,
        IndexLimits.of(config),
        open_segments,
        base_offsets=bases or [log_start_offset],
        now_ms=now_ms,
    )
    epochs = _read_epochs(files, path / EPOCHS)
    end_offset = _trusted_end(segments) if clean else None
    checked_from, gaps = None, list[int]()
    if end_offset is None:
        checked_from = segments.since(recovery_point)[0].base_offset
        size_bytes = segments.size_bytes
        end_offset, found = _recover(segments, epochs, checked_from)
        gaps = [
            each.start
            for each in found
            if each.next_offset > recovery_point or each.next_offset == end_offset
        ]
        is_compacted = "compact" in config.cleanup_policy
        if segments.size_bytes < size_bytes or (gaps and not is_compacted):
            # Usually a batch that the broker was writing when it died, and never acknowledged.
            # But an acknowledged batch that the disk has damaged since looks the same.
            log_dir.owner.mark_unclean_shutdown()
        # Rebuilt files are not synced, although the batches may have been.
        recovery_point = min(recovery_point, checked_from)
    if end_offset < log_start_offset:
        logger.warning(
            "%s: ends at %d, before its start: it starts again at %d",
            path,
            end_offset,
            log_start_offset,
        )
        segments.restart_at(log_start_offset, now_ms)
        checked_from, end_offset, gaps = None, log_start_offset, []
        recovery_point = log_start_offset
    log_start_offset = max(log_start_offset, segments.first.base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    producers = _producers(files, segments, end_offset, log_start_offset, checked_from)
    recovery_point = end_offset if checked_from is None else min(recovery_point, end_offset)
    state = LoadedState(
        segments,
        producers,
        epochs,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        end_offset=end_offset,
        changed=fresh or checked_from is not None,
        unverified_gaps=[
            max(each, log_start_offset) for each in gaps if log_start_offset < end_offset
        ],
    )
    return PartitionLog(files, log_dir, topic_partition, config, state)


def new_log(
    files: Files,
    log_dir: LogDir,
    path: Path,
    topic_partition: TopicPartition,
    config: TopicConfig,
    open_segments: OpenSegments,
    now_ms: int,
) -> PartitionLog:
    """A new log, without a search for files that cannot exist; on any thread.

    A topic may have thousands of partitions, and clients wait for all of them.
    """
    files.make_dir(path)
    files.open(offset_path(path, 0, LOG), create=True).close()
    limits = IndexLimits.of(config)
    segments = Segments(files, path, limits, open_segments, base_offsets=[0], now_ms=now_ms)
    segments.active.begin_indexes()
    state = LoadedState(
        segments,
        ProducerState(0),
        LeaderEpochs(),
        log_start_offset=0,
        recovery_point=0,
        end_offset=0,
        changed=True,
        unverified_gaps=[],
    )
    return PartitionLog(files, log_dir, topic_partition, config, state)


def _read_epochs(files: Files, path: Path) -> LeaderEpochs:
    if not files.exists(path):
        return LeaderEpochs()
    try:
        return LeaderEpochs.decode(files.read(path), str(path))
    except CorruptFile as error:
        logger.warning("%s; epochs are read off the batches instead", error)
        return LeaderEpochs()


def _trusted_end(segments: Segments) -> int | None:
    try:
        end_offset = segments.active.next_offset()
        segments.active.release()  # most logs of a broker are idle
        return end_offset
    except CorruptBatch as error:
        logger.warning("%s: not as a clean stop leaves it: %s", segments.directory, error)
        return None


class Gap(NamedTuple):
    """Offsets from `start` on that no batch has."""

    start: int
    next_offset: int
    """After what follows the gap."""


def _recover(segments: Segments, epochs: LeaderEpochs, checked_from: int) -> tuple[int, list[Gap]]:
    """Check the segments from `checked_from` on; returns the end offset, and the gaps.

    Everything after a bad batch is lost. Gaps between batches or segments are not evidence of
    damage, as in Kafka: compaction leaves them, and neither the topic's present policy nor a
    checkpoint tells where compaction once ran. Only the leader's log tells. But what was synced is
    not lost, so there only the last batch is in doubt: no later one confirms its offset.
    """
    # Epochs that start here may be of batches that a crash lost; the others are read again.
    epochs.truncate_from_end(checked_from)
    unchecked = segments.since(checked_from)
    end_offset, gaps = checked_from, list[Gap]()

    def drop_rest() -> None:
        """Remove later segments before the truncation: after it nothing would identify them."""
        if unchecked:
            _drop(segments, unchecked, end_offset)
            unchecked.clear()

    while unchecked:
        segment = unchecked.pop(0)
        if end_offset < segment.base_offset:
            gaps.append(Gap(end_offset, segment.base_offset))
            end_offset = segment.base_offset
        for header in _recover_segment(segment, drop_rest):
            if end_offset < header.base_offset:
                gaps.append(Gap(end_offset, header.next_offset))
            end_offset = header.next_offset
            if header.leader_epoch > (-1 if epochs.latest is None else epochs.latest):
                epochs.assign(header.leader_epoch, header.base_offset)
        next_base = unchecked[0].base_offset if unchecked else end_offset
        if next_base < end_offset:
            drop_rest()
    return end_offset, gaps


def _drop(segments: Segments, lost: list[Segment], end_offset: int) -> None:
    logger.warning(
        "%s: cut %s of %d bytes after offset %d",
        segments.directory,
        counted(len(lost), "segment"),
        sum(segment.size_bytes for segment in lost),
        end_offset,
    )
    segments.drop(lost)
    segments.sync_names()


def _producers(
    files: Files,
    segments: Segments,
    end_offset: int,
    log_start_offset: int,
    checked_from: int | None,
) -> ProducerState:
    """The producer state at the end; rebuilds the aborted-transaction indexes from `checked_from`
    on.
    """
    directory = segments.directory
    remove_stray_snapshots(
        files,
        directory,
        {segment.base_offset for segment in segments},
        end_offset if checked_from is None else checked_from,
    )
    state = latest_state(files, directory, up_to=end_offset, log_start_offset=log_start_offset)

    def completed(segment: Segment, txn: CompletedTxn) -> None:
        if checked_from is not None and segment.base_offset >= checked_from:
            index_aborted(segment, txn)

    replay_readable(state, segments, end_offset, completed)
    return state


def _recover_segment(segment: Segment, before_cut: Callable[[], None]) -> Iterator[BatchHeader]:
    """Check every batch, rebuild the indexes and yield the headers.

    Truncates the file at the first bad batch, and syncs at once: batches after the bad one may
    be whole, and must not follow what is written there next.
    """
    segment.reset_indexes()
    segment.txn_index.remove()
    found = checked(segment.file, segment.size_bytes)
    position = 0
    try:
        for position, header in in_order(found, segment.base_offset):
            if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                raise CorruptBatch(f"offset {header.last_offset} is far from the base offset")
            segment.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
            yield header
            position += header.size_bytes
    except CorruptBatch as error:
        refuse_old_format(segment.file, position, segment.size_bytes)
        logger.warning(
            "%s: cut %d of %d bytes: the batch at byte %d is bad: %s",
            segment.path(),
            segment.size_bytes - position,
            segment.size_bytes,
            position,
            error,
        )
        before_cut()
        segment.cut(position)
        segment.file.sync()
    segment.close()
