"""What a follower does with its leader's answers: append, cut, or wait. No network here."""

import logging
from collections.abc import Callable
from enum import Enum, auto

from penstock.errors import ErrorCode
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
from penstock.replication.partition import Partition
from penstock.replication.truncation import (
    Cut,
    EpochEnd,
    Restart,
    TruncationRule,
    cut_at,
    not_yet_written,
    within,
)
from penstock.types import TopicPartition
from penstock.wire.messages.fetch import FetchPartition, PartitionData

logger = logging.getLogger(__name__)


class Next(Enum):
    """How a partition goes on after an answer."""

    FETCH = auto()
    LATER = auto()
    """The leader cannot answer yet: ask again after `replica.fetch.backoff.ms`."""
    FIND_RANGE = auto()
    """The follower's end is not in the leader's log: ask where that begins and ends."""
    AWAIT_LEADER = auto()
    """There is a newer leader, of which the controller will tell."""


class FollowerLogs:
    """Cuts logs, and tells the compactor before it does. Belongs to the event loop."""

    def __init__(self, store: LogStore, before_cut: Callable[[PartitionLog, int], object]) -> None:
        self._store, self._before_cut = store, before_cut

    def cut(self, where: TopicPartition, offset: int) -> None:
        log = self._store.logs[where]
        if offset < log.end_offset:
            if offset < log.high_watermark:
                logger.warning(
                    "%s is cut at %d, below its high watermark %d",
                    where,
                    offset,
                    log.high_watermark,
                )
            self._before_cut(log, offset)
        self._store.truncate({where: offset})

    def restart(self, where: TopicPartition, offset: int, now_ms: int) -> None:
        self._before_cut(self._store.logs[where], 0)
        self._store.truncate_fully(where, offset, now_ms)


def next_fetch(partition: Partition, max_bytes: int) -> FetchPartition:
    """What to ask the leader for: all that follows the log's end."""
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


def is_next_fetch(asked: FetchPartition, partition: Partition, max_bytes: int) -> bool:
    """Whether `next_fetch` would be just this; cheaper than to make it for thousands in vain."""
    log = partition.log
    latest = log.epochs.latest
    return (
        asked.fetch_offset == log.end_offset
        and asked.current_leader_epoch == partition.leader_epoch
        and asked.last_fetched_epoch == (-1 if latest is None else latest)
        and asked.log_start_offset == log.log_start_offset
        and asked.partition_max_bytes == max_bytes
    )


def take(
    partition: Partition,
    asked: FetchPartition,
    data: PartitionData,
    logs: FollowerLogs,
    now_ms: int,
    rule: TruncationRule = cut_at,
) -> Next:
    """Carry out what the leader answered; refusals of the disk or of the batches rise."""
    log = partition.log
    if (partition.leads, partition.leader_epoch, log.end_offset) != (
        False,
        asked.current_leader_epoch,
        asked.fetch_offset,
    ):
        return Next.FETCH  # asked of another leader, or about another log than there is now
    if data.error_code != ErrorCode.NONE:
        return after_error(partition, data.error_code)
    if data.diverging_epoch.epoch >= 0:
        leader = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        cut = rule(leader, log.epochs, log.end_offset, log.high_watermark)
        logger.info("%s parts from its leader at %d", partition.topic_partition, cut.offset)
        logs.cut(partition.topic_partition, cut.offset)
        return Next.FETCH
    records = data.records
    if isinstance(records, (bytes, bytearray, memoryview)) and len(records):
        log.append_as_follower(records, now_ms)
        partition.bytes_in += len(records)
    partition.heard(data.high_watermark, data.log_start_offset)
    return Next.FETCH


def after_error(partition: Partition, code: int) -> Next:
    match code:
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return Next.FIND_RANGE
        case ErrorCode.FENCED_LEADER_EPOCH:
            logger.debug("%s: a newer leader was elected", partition.topic_partition)
            return Next.AWAIT_LEADER
        case _:
            # As a rule the leader has not heard yet that it leads, or that the topic is new.
            logger.debug("%s: its leader answers %s", partition.topic_partition, code)
            return Next.LATER


def move_within(
    partition: Partition,
    leader_start_offset: int,
    leader_end_offset: int,
    logs: FollowerLogs,
    now_ms: int,
) -> None:
    """Bring the log into the leader's range."""
    where, log = partition.topic_partition, partition.log
    if (damaged := not_yet_written(log.epochs, partition.leader_epoch)) is not None:
        logger.warning("%s has a later epoch than its leader: cut at %d", where, damaged.offset)
        logs.cut(where, damaged.offset)
    match within(leader_start_offset, leader_end_offset, log.end_offset):
        case Cut(offset):
            logger.warning("%s is longer than its leader's log: cut at %d", where, offset)
            logs.cut(where, offset)
        case Restart(offset):
            logger.info("%s begins anew at %d, where its leader's log does", where, offset)
            logs.restart(where, offset, now_ms)
        case None:
            pass
