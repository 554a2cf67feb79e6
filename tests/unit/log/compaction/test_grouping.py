"""Which neighbouring segments compaction joins."""

from penstock.log.compaction.grouping import MOST_SEGMENTS, SegmentSizes, grouped
from penstock.log.compaction.job import SegmentSize


def sizes(count: int, size_bytes: int, segment_bytes: int) -> list[int]:
    segments = [
        SegmentSizes(SegmentSize(base, size_bytes), 0, 0, base + 1) for base in range(count)
    ]
    return [len(group) for group in grouped(segments, segment_bytes, 1 << 20)]


def test_segments_are_joined_up_to_the_size_of_one() -> None:
    assert sizes(5, 400, 1_000) == [2, 2, 1]
    assert sizes(3, 2_000, 1_000) == [1, 1, 1]


def test_very_many_small_segments_are_joined_a_few_at_a_time() -> None:
    """The broker swaps a group in at once: it would stand still for thousands of them."""
    count = 2 * MOST_SEGMENTS + 1
    assert sizes(count, 1, 1 << 30) == [MOST_SEGMENTS, MOST_SEGMENTS, 1]
