"""Applies fetch responses to a follower's log: append, truncate or wait. No network I/O."""

import logging
from collections.abc import Callable
from enum import Enum, auto

from penstock.errors import ErrorCode
from penstock.log.follower_append import append_as_follower
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
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
from penstock.types import TopicPartition
from penstock.wire.messages.fetch import FetchPartition, PartitionData

logger = logging.getLogger(__name__)


class NextStep(Enum):
    """The next step of a partition after a response."""

    FETCH = auto()
    LATER = auto()
    """The leader cannot answer yet: retry after `replica.fetch.backoff.ms`."""
    FIND_RANGE = auto()
    """The follower's end is outside the leader's log: ask for that log's start and end."""
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

    def drop_unverified(self, topic_partition: TopicPartition) -> None:
        """Truncate a last batch whose offset may be damaged, for the leader to send it again."""
        log = self._store.logs[topic_partition]
        if log.unverified is not None:
            start, end = log.unverified
            if end == log.end_offset:
                logger.info("%s: fetching offset %d, after a gap, again", topic_partition, start)
                self.truncate(topic_partition, start)
            log.unverified = None

    def restart(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> None:
        self._before_truncation(self._store.logs[topic_partition], 0)
        self._store.truncate_fully(topic_partition, offset, now_ms)


def next_fetch(partition: Partition, max_bytes: int) -> FetchPartition:
    """The request for everything after the log's end."""
    log = partition.log
    latest = log.epochs.latest
    return FetchPartition(
        partition=partition.topic_partition.partition,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=log.end_offset,
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
    if (partition.leads, partition.leader_epoch, log.end_offset) != (
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
        append_as_follower(log, records, now_ms)
        partition.bytes_in += len(records)
    partition.update_from_leader(data.high_watermark, data.log_start_offset)
    return NextStep.FETCH


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
    match within(leader_start_offset, leader_end_offset, log.end_offset):
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
            pass
