"""Divides the records of a micro-batch into tasks, even those of one partition."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.spark.source.ranges import OffsetRange, cut
from penstock.spark.source.share.offset_ranges import OffsetRanges
from penstock.types import NO_UUID, TopicPartition, Uuid


@dataclass(frozen=True, slots=True)
class ShareTaskRecords:
    """One task's records."""

    topic_partition: TopicPartition
    offsets: OffsetRanges
    topic_id: Uuid = NO_UUID

    @property
    def covering(self) -> OffsetRange:
        """The range to fetch. Records of other members may lie in between, but never many: all
        locked records lie within `share.partition.max.record.locks`.
        """
        start = self.offsets.ranges[0][0]
        return OffsetRange(self.topic_partition, start, self.offsets.end, self.topic_id)

    def __str__(self) -> str:
        return f"{self.topic_partition} {self.offsets}"


def divided(
    records: Mapping[TopicPartition, OffsetRanges],
    ids: Mapping[str, Uuid],
    *,
    at_least: int = 0,
    at_most_records: int = 0,
) -> list[ShareTaskRecords]:
    """Divide records into pieces of about the same size, as `cut` divides ranges."""
    numbered = [
        OffsetRange(tp, 0, records[tp].count, ids.get(tp.topic, NO_UUID)) for tp in sorted(records)
    ]
    return [
        ShareTaskRecords(
            piece.topic_partition,
            records[piece.topic_partition].part(piece.start, piece.end),
            piece.topic_id,
        )
        for piece in cut(numbered, at_least=at_least, at_most_records=at_most_records)
    ]
