"""The HTTP page about a topic's segments on this broker, with their files."""

from collections.abc import Iterator
from os import scandir
from typing import Final

from msgspec import Struct

from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId

DIGITS: Final = 20
"""Digits of the base offset that begins the name of each segment file."""


class SegmentFile(Struct, frozen=True):
    """A file in the partition's directory."""

    name: str
    size_bytes: int


class SegmentFiles(Struct, frozen=True):
    """A segment: records from `base_offset` up to `next_offset`, the next segment's first."""

    broker: int
    partition: int
    base_offset: int
    next_offset: int
    size_bytes: int
    is_active: bool
    files: tuple[SegmentFile, ...]


def segments(broker_id: BrokerId, partitions: Partitions, topic: str) -> list[SegmentFiles]:
    return [
        found
        for each in partitions
        if each.topic_partition.topic == topic
        for found in _segments(broker_id, each)
    ]


def _segments(broker_id: BrokerId, partition: Partition) -> Iterator[SegmentFiles]:
    log = partition.log
    files: dict[int, list[SegmentFile]] = {}
    try:
        with scandir(log.path) as found:
            for each in found:
                if each.name[:DIGITS].isdigit():
                    file = SegmentFile(each.name, each.stat().st_size)
                    files.setdefault(int(each.name[:DIGITS]), []).append(file)
    except OSError:  # its disk failed, or retention deleted the file meanwhile
        pass
    known = list(log.segments)
    ends = [*(each.base_offset for each in known[1:]), log.end_offset]
    for segment, end in zip(known, ends, strict=True):
        yield SegmentFiles(
            broker_id,
            partition.topic_partition.partition,
            segment.base_offset,
            end,
            segment.size_bytes,
            segment is known[-1],
            tuple(sorted(files.get(segment.base_offset, ()), key=lambda file: file.name)),
        )
