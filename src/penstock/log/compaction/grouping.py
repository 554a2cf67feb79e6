"""Groups neighbouring segments that become one when they are cleaned. Pure."""

from collections.abc import Sequence

import msgspec

from penstock.log.compaction.job import SegmentSize

MAX_RELATIVE_OFFSET = (1 << 31) - 1
MOST_SEGMENTS = 20
"""The broker's loop renames the files of all segments of a group at once, a millisecond each. Later
cleanings join what is left.
"""


class SegmentSizes(msgspec.Struct, frozen=True):
    """A segment's sizes before cleaning, and the offset where the next one begins."""

    segment: SegmentSize
    index_bytes: int
    time_index_bytes: int
    next_base_offset: int


def grouped(
    segments: Sequence[SegmentSizes], segment_bytes: int, index_bytes: int
) -> list[list[SegmentSizes]]:
    """Groups whose sizes before cleaning fit in one segment: afterwards they fit all the more.

    Without this a log that shrinks would end as many tiny segments.
    """
    groups: list[list[SegmentSizes]] = []
    for each in segments:
        if groups and _fits([*groups[-1], each], segment_bytes, index_bytes):
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _fits(group: list[SegmentSizes], segment_bytes: int, index_bytes: int) -> bool:
    first, last = group[0].segment.base_offset, group[-1].next_base_offset - 1
    return (
        len(group) <= MOST_SEGMENTS
        and sum(each.segment.size_bytes for each in group) <= segment_bytes
        and sum(each.index_bytes for each in group) <= index_bytes
        and sum(each.time_index_bytes for each in group) <= index_bytes
        and last - first <= MAX_RELATIVE_OFFSET
    )
