"""Which part of a log may be cleaned, and which log is cleaned next."""

import pytest

from penstock.config.topic import TopicConfig
from penstock.log.compaction.cleanable import (
    DirtyPart,
    LogState,
    SegmentAge,
    dirtiest,
    dirty_part,
    is_worth_cleaning,
)

NOW = 1_000_000
CONFIG = TopicConfig(cleanup_policy=("compact",))


def log(
    *, cleaned_to: int | None = None, start: int = 0, stable: int = 40, synced: int = 40
) -> LogState:
    """Four segments of ten offsets and a hundred bytes; the last one is active."""
    segments = [
        SegmentAge(base, 100, first_ms=NOW - 500 + base, newest_ms=NOW - 490 + base)
        for base in (0, 10, 20, 30)
    ]
    return LogState(segments, start, stable, 40, synced, cleaned_to)


def test_a_log_never_cleaned_is_dirty_up_to_its_active_segment() -> None:
    part = dirty_part(log(), CONFIG, NOW)
    assert part == DirtyPart(0, 30, clean_bytes=0, dirty_bytes=300, overdue=False)
    assert part.ratio == 1.0


def test_the_cleaned_part_is_clean() -> None:
    part = dirty_part(log(cleaned_to=20), CONFIG, NOW)
    assert part == DirtyPart(20, 30, clean_bytes=200, dirty_bytes=100, overdue=False)
    assert part.ratio == pytest.approx(1 / 3)


@pytest.mark.parametrize("cleaned_to", [5, 99])
def test_a_checkpoint_outside_of_the_log_is_ignored(cleaned_to: int) -> None:
    assert dirty_part(log(cleaned_to=cleaned_to, start=7), CONFIG, NOW).first_dirty == 7


@pytest.mark.parametrize(("stable", "end"), [(40, 30), (29, 20), (20, 20), (19, 10), (3, 0)])
def test_segments_with_unstable_offsets_are_left_alone(stable: int, end: int) -> None:
    assert dirty_part(log(stable=stable), CONFIG, NOW).first_uncleanable == end


@pytest.mark.parametrize(("synced", "end"), [(40, 30), (29, 20), (20, 20), (0, 0)])
def test_segments_that_a_crash_may_lose_are_left_alone(synced: int, end: int) -> None:
    assert dirty_part(log(synced=synced), CONFIG, NOW).first_uncleanable == end


def test_segments_with_records_younger_than_the_lag_are_left_alone() -> None:
    config = TopicConfig(min_compaction_lag_ms=480)
    part = dirty_part(log(), config, NOW)
    assert (part.first_uncleanable, part.dirty_bytes) == (20, 200)


def test_timestamps_in_the_future_delay_compaction_only_with_a_minimum_lag() -> None:
    assert dirty_part(log(), CONFIG, now_ms=0).first_uncleanable == 30
    lag = TopicConfig(min_compaction_lag_ms=1)
    assert dirty_part(log(), lag, now_ms=0).first_uncleanable == 0


def test_a_log_is_overdue_when_its_oldest_dirty_record_is_too_old() -> None:
    config = TopicConfig(max_compaction_lag_ms=485)
    assert dirty_part(log(), config, NOW).overdue
    assert dirty_part(log(cleaned_to=10), config, NOW).overdue
    assert not dirty_part(log(cleaned_to=20), config, NOW).overdue


def test_a_log_of_one_segment_has_nothing_to_clean() -> None:
    state = LogState([SegmentAge(0, 100, 1, 2)], 0, 10, 10, 10, None)
    part = dirty_part(state, CONFIG, NOW)
    assert (part.dirty_bytes, part.ratio) == (0, 0.0)
    assert not is_worth_cleaning(part, CONFIG)


@pytest.mark.row("A102")
def test_cleaning_starts_above_the_ratio_or_when_overdue() -> None:
    assert not is_worth_cleaning(DirtyPart(10, 20, 50, 50, overdue=False), CONFIG)
    assert is_worth_cleaning(DirtyPart(10, 20, 49, 51, overdue=False), CONFIG)
    assert is_worth_cleaning(DirtyPart(10, 20, 99, 1, overdue=True), CONFIG)
    assert not is_worth_cleaning(DirtyPart(10, 10, 99, 0, overdue=True), CONFIG)


def test_the_dirtiest_log_is_cleaned_next() -> None:
    logs = {
        "a": (DirtyPart(0, 1, 40, 60, overdue=False), CONFIG),
        "b": (DirtyPart(0, 1, 10, 90, overdue=False), CONFIG),
        "c": (DirtyPart(0, 1, 60, 40, overdue=False), CONFIG),
    }
    assert dirtiest(logs) == "b"
    assert dirtiest({"c": logs["c"]}) is None
