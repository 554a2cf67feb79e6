"""Decides which partitions a fetch response contains, and groups them by topic. Pure."""

from collections.abc import Iterable
from typing import Final

from penstock.broker.fetch.sessions import CachedPartition
from penstock.errors import ErrorCode
from penstock.log.lookup import LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.wire.messages.fetch import FetchableTopicResponse, PartitionData

NO_PREFERENCE: Final = -1
"""No other replica is preferred: the consumer goes on reading here (KIP-392)."""


def has_everything(log: PartitionLog, cached: CachedPartition) -> bool:
    """Whether the reader's log ends where this one does, in the same epoch: the usual case."""
    return (
        cached.fetch_offset == log.end_offset
        and cached.last_fetched_epoch in {-1, log.epochs.latest}
        and cached.fetch_offset >= log.log_start_offset
    )


def has_moved(log: PartitionLog, cached: CachedPartition) -> bool:
    """Whether the offsets differ from those in the last response."""
    return (
        cached.sent_error
        or log.high_watermark != cached.sent_high_watermark
        or log.log_start_offset != cached.sent_log_start
    )


def must_be_sent(cached: CachedPartition, data: PartitionData) -> bool:
    """Whether an incremental response must contain this partition."""
    return (
        isinstance(data.records, LogSlice)
        or data.error_code != ErrorCode.NONE
        or cached.sent_error
        or data.high_watermark != cached.sent_high_watermark
        or data.log_start_offset != cached.sent_log_start
        or data.diverging_epoch.end_offset >= 0
        or data.preferred_read_replica != NO_PREFERENCE
    )


def by_topic(
    found: Iterable[tuple[CachedPartition, PartitionData]],
) -> Iterable[FetchableTopicResponse]:
    """Topics of the response: neighbouring partitions of one topic together, in reading order."""
    topic: CachedPartition | None = None
    parts: list[PartitionData] = []
    for cached, data in found:
        if topic is None or (topic.topic, topic.topic_id) != (cached.topic, cached.topic_id):
            if topic is not None:
                yield _topic(topic, parts)
            topic, parts = cached, []
        parts.append(data)
    if topic is not None:
        yield _topic(topic, parts)


def _topic(topic: CachedPartition, parts: list[PartitionData]) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=parts)
