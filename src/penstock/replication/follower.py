"""Applies fetch responses to a follower's log: append, truncate or wait. No network I/O."""

import logging
from collections.abc import Callable
from enum import Enum, auto

from penstock.errors import ErrorCode
from penstock.log.follower_append import OffsetsOutOfOrder, append_as_follower
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
from penstock.record.batch import batches, read_header
from penstock.replication.partition import Partition
from penstock.replication.truncation import (
    EpochEnd,
    LogRestart,
    OffsetTruncation,
    TruncationRule,
    truncation_by_epoch,
    truncation_of_later_epochs,
    within,
)
from penstock.types import Buffer, TopicPartition
from penstock.wire.messages.fetch import FetchPartition, PartitionData

logger = logging.getLogger(__name__)


class NextStep(Enum):
    """The next step of a partition after a response."""

    FETCH = auto()
    LATER = auto()
    """The leader cannot answer yet: retry after `replica.fetch.backoff.ms`."""
    FIND_RANGE = auto()
    """The follower's end is, or may be, outside the leader's log: ask for its start and end."""
    AWAIT_LEADER = auto()
    """There is a newer leader: wait for the controller's LeaderAndIsr."""


class FollowerLogs:
    """Truncates logs, after notifying the compactor. Belongs to the event loop."""

    def __init__(
        self, store: LogStore, before_truncation: Callable[[PartitionLog, int], object]
    ) -> None:
        self._store, self._before_truncation = store, before_truncation

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        log = self._store.logs[topic_partition]
        if offset < log.end_offset:
            if offset < log.high_watermark:
                logger.warning(
                    "%s is truncated at %d, below its high watermark %d",
                    topic_partition,
                    offset,
                    log.high_watermark,
                )
            self._before_truncation(log, offset)
        self._store.truncate({topic_partition: offset})

    def restart(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> None:
        self._before_truncation(self._store.logs[topic_partition], 0)
        self._store.truncate_fully(topic_partition, offset, now_ms)


def fetch_offset(log: PartitionLog) -> int:
    """Where to fetch from. The leader counts on everything before it."""
    return log.unverified_gaps[0] if log.unverified_gaps else log.end_offset


def next_fetch(partition: Partition, max_bytes: int) -> FetchPartition:
    """The request for everything after the log's end."""
    log = partition.log
    start = fetch_offset(log)
    latest = log.epochs.latest if start == log.end_offset else log.epochs.epoch_for(start - 1)
    return FetchPartition(
        partition=partition.topic_partition.partition,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=start,
        last_fetched_epoch=-1 if latest is None else latest,
        log_start_offset=log.log_start_offset,
        partition_max_bytes=max_bytes,
    )


def is_next_fetch(request: FetchPartition, partition: Partition, max_bytes: int) -> bool:
    """Whether `next_fetch` would return the same; cheaper than creating it for thousands."""
    log = partition.log
    latest = log.epochs.latest
    return (
        request.fetch_offset == log.end_offset
        and not log.unverified_gaps
        and request.current_leader_epoch == partition.leader_epoch
        and request.last_fetched_epoch == (-1 if latest is None else latest)
        and request.log_start_offset == log.log_start_offset
        and request.partition_max_bytes == max_bytes
    )


def process_partition_data(
    partition: Partition,
    request: FetchPartition,
    data: PartitionData,
    logs: FollowerLogs,
    now_ms: int,
    rule: TruncationRule = truncation_by_epoch,
) -> NextStep:
    """Apply a partition's part of a fetch response; raises disk and batch errors."""
    log = partition.log
    if (partition.leads, partition.leader_epoch, fetch_offset(log)) != (
        False,
        request.current_leader_epoch,
        request.fetch_offset,
    ):
        return NextStep.FETCH  # leader, epoch or log have changed since the request
    if data.error_code != ErrorCode.NONE:
        return next_step_after_error(partition, data.error_code)
    if data.diverging_epoch.epoch >= 0:
        leader = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        cut = rule(leader, log.epochs, log.end_offset, log.high_watermark)
        logger.info(
            "%s diverges from its leader; truncating at %d", partition.topic_partition, cut.offset
        )
        logs.truncate(partition.topic_partition, cut.offset)
        return NextStep.FETCH
    records = data.records
    if isinstance(records, (bytes, bytearray, memoryview)) and len(records):
        if log.unverified_gaps:
            return verify_gaps(partition, records, logs)
        try:
            append_as_follower(log, records, now_ms)
        except OffsetsOutOfOrder:
            distrust_last_batch(log)
            raise
        partition.bytes_in += len(records)
    if log.unverified_gaps:
        # Perhaps the leader's log ends before the gap, or else the response had no room left.
        may_end = data.high_watermark <= request.fetch_offset
        return NextStep.FIND_RANGE if may_end else NextStep.FETCH
    partition.update_from_leader(data.high_watermark, data.log_start_offset)
    return NextStep.FETCH


def verify_gaps(partition: Partition, records: Buffer, logs: FollowerLogs) -> NextStep:
    """Compare the batches behind the first gap that recovery found with the leader's; truncate the
    log there if they differ. Compaction leaves gaps, but batches may also have been lost there, or
    a bit of the next one's offset may have flipped: no CRC covers it.
    """
    log, verified_end = partition.log, -1
    start = log.unverified_gaps[0]
    found = log.read(start, len(records), up_to=log.end_offset)
    own = b"" if found is None else found.read()
    for (_, mine), (_, expected) in zip(batches(own), batches(records), strict=False):
        if (mine.base_offset, mine.crc) != (expected.base_offset, expected.crc):
            break
        verified_end = mine.next_offset
    if verified_end < 0:
        logger.warning(
            "%s lacks batches of its leader, or has them at other offsets; truncating at %d",
            partition.topic_partition,
            start,
        )
        logs.truncate(partition.topic_partition, start)
        return NextStep.FETCH
    log.unverified_gaps = [each for each in log.unverified_gaps if each >= verified_end]
    # If it is the leader whose batches contradict each other, do not hurry.
    return NextStep.FETCH if log.unverified_gaps else NextStep.LATER


def distrust_last_batch(log: PartitionLog) -> None:
    """Have the last batch compared with the leader's, which has sent one that overlaps it."""
    if log.log_start_offset < log.end_offset:
        last = log.read(log.end_offset - 1, 1, up_to=log.end_offset)
        if last is not None:
            log.unverified_gaps = [read_header(last.read()).base_offset]


def next_step_after_error(partition: Partition, code: int) -> NextStep:
    match code:
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return NextStep.FIND_RANGE
        case ErrorCode.FENCED_LEADER_EPOCH:
            logger.debug(
                "%s: a newer leader was elected; waiting for the controller",
                partition.topic_partition,
            )
            return NextStep.AWAIT_LEADER
        case _:
            # Usually the leader does not know yet that it leads, or that the topic exists.
            logger.debug("%s: the leader answered with error %s", partition.topic_partition, code)
            return NextStep.LATER


def move_into_leader_range(
    partition: Partition,
    leader_start_offset: int,
    leader_end_offset: int,
    logs: FollowerLogs,
    now_ms: int,
) -> None:
    """Move the log's end into the leader's range."""
    topic_partition, log = partition.topic_partition, partition.log
    if (damaged := truncation_of_later_epochs(log.epochs, partition.leader_epoch)) is not None:
        logger.warning(
            "%s has batches of a later epoch than its leader; truncating at %d",
            topic_partition,
            damaged.offset,
        )
        logs.truncate(topic_partition, damaged.offset)
    match within(leader_start_offset, leader_end_offset, fetch_offset(log)):
        case OffsetTruncation(offset):
            logger.warning(
                "%s is longer than its leader's log; truncating at %d", topic_partition, offset
            )
            logs.truncate(topic_partition, offset)
        case LogRestart(offset):
            logger.info(
                "%s ends before its leader's log starts; restarting at %d",
                topic_partition,
                offset,
            )
            logs.restart(topic_partition, offset, now_ms)
        case None:
            if log.unverified_gaps and leader_end_offset == fetch_offset(log):
                logs.truncate(topic_partition, leader_end_offset)  # the leader has nothing there
