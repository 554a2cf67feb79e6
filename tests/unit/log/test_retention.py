"""Which segments retention drops, by time and by size."""

import pytest

from penstock.log.retention import Retention, SegmentInfo, deletable

NOW_MS = 1_000_000


def segments(*newest_and_size: tuple[int, int]) -> list[SegmentInfo]:
    last = len(newest_and_size) - 1
    return [
        SegmentInfo(n * 10, n * 10 + 10, size, newest_ms, active=n == last)
        for n, (newest_ms, size) in enumerate(newest_and_size)
    ]


def dropped(
    infos: list[SegmentInfo],
    *,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    log_start_offset: int = 0,
    high_watermark: int = 1 << 40,
) -> int:
    bounds = Retention(retention_ms, retention_bytes, log_start_offset, high_watermark)
    return deletable(infos, sum(info.size_bytes for info in infos), bounds, NOW_MS)


def test_segments_are_dropped_once_their_newest_record_is_past_retention() -> None:
    infos = segments((NOW_MS - 3_001, 5), (NOW_MS - 3_000, 5), (NOW_MS - 4_000, 5), (NOW_MS, 5))
    assert dropped(infos, retention_ms=3_000) == 1


def test_without_limits_nothing_is_dropped() -> None:
    assert dropped(segments((0, 5), (0, 5))) == 0


def test_a_retention_of_zero_drops_everything_before_this_millisecond() -> None:
    assert dropped(segments((NOW_MS - 1, 5), (NOW_MS, 5), (NOW_MS, 5)), retention_ms=0) == 1


def test_a_future_timestamp_keeps_a_segment_and_all_after_it() -> None:
    assert dropped(segments((NOW_MS + 1, 5), (0, 5), (0, 5)), retention_ms=0) == 0


@pytest.mark.row("A101")
@pytest.mark.parametrize(("limit", "count"), [(40, 0), (31, 0), (30, 1), (29, 1), (10, 3), (0, 4)])
def test_by_size_only_whole_segments_beyond_the_limit_are_dropped(limit: int, count: int) -> None:
    infos = segments((0, 10), (0, 10), (0, 10), (0, 10))
    assert dropped(infos, retention_bytes=limit) == count


def test_unreplicated_records_stay() -> None:
    infos = segments((0, 10), (0, 10), (0, 10))
    assert dropped(infos, retention_ms=1, high_watermark=19) == 1
    assert dropped(infos, retention_ms=1, high_watermark=20) == 2


def test_segments_before_the_log_start_are_dropped_under_any_policy() -> None:
    infos = segments((NOW_MS, 10), (NOW_MS, 10), (NOW_MS, 10))
    assert dropped(infos, log_start_offset=20) == 2
    assert dropped(infos, log_start_offset=19) == 1
    assert dropped(infos, log_start_offset=30) == 2, "the active one is not dropped for this"


def test_an_active_segment_is_dropped_when_expired_but_not_when_empty() -> None:
    assert dropped(segments((0, 10), (0, 10)), retention_ms=1) == 2
    assert dropped(segments((0, 10), (0, 0)), retention_ms=1) == 1
