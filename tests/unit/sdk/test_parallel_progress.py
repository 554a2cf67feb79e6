"""Progress out of order, at the promised sizes."""

import random
import tracemalloc

import pytest

from penstock.sdk.parallel.progress import PAGE, LaneProgress, PageState
from penstock.sdk.parallel.saved import (
    MOST_METADATA,
    UnreadableProgress,
    from_metadata,
    to_metadata,
)


def finished(progress: LaneProgress, offsets: range) -> None:
    for offset in offsets:
        progress.start(offset)
        progress.finish(offset)


@pytest.mark.row("A059")
def test_ten_million_finished_offsets_behind_a_hanging_one_fit_into_metadata() -> None:
    """Whole pages at a time, as a gap in the log fills them, because the suite has no minute to
    spare.
    """
    progress = LaneProgress(0)
    progress.start(0)
    tracemalloc.start()
    progress.start(10_000_000)  # nothing in between: all of it counts as finished
    finished(progress, range(10_000_000, 10_000_000 + 10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert progress.base == 0
    text = to_metadata(progress.pages())
    assert text is not None
    assert len(text) < 200
    again = LaneProgress(0, from_metadata(text))
    assert again.start(0)
    assert again.next_unfinished(1) == 10_010_000
    again.finish(0)
    assert again.base == 10_010_000


@pytest.mark.parametrize("end", [0, 5, 7, 8, PAGE, PAGE + 3, 3 * PAGE])
def test_offsets_beyond_the_end_of_a_truncated_log_are_not_finished(end: int) -> None:
    progress = LaneProgress(0)
    progress.start(0)
    progress.start(2 * PAGE + 9)  # all offsets in between count as finished
    assert progress.forget_from(end) == (end <= 2 * PAGE + 8)
    last = min(end, 2 * PAGE + 9)
    assert not progress.is_finished(max(end, 1))
    assert all(progress.is_finished(each) for each in range(1, last))
    assert progress.next_unfinished(1) == max(last, 1)


@pytest.mark.parametrize("end", [90, 110, 120, 150, 200])
def test_a_log_truncated_below_pages_newer_than_the_commit_is_handled(end: int) -> None:
    """A kill between the two writes: the commit has offset 100, and the pages all up to 149."""
    newer = LaneProgress(99)
    newer.start(99)
    finished(newer, range(100, 150))
    progress = LaneProgress(100, newer.pages())
    assert progress.forget_from(end) == (end < 150)
    assert progress.base == max(100, min(end, 150))
    assert progress.is_behind(90)
    assert not progress.is_behind(100)
    assert all(progress.start(each) for each in range(max(end, 100), 160))


def test_random_gaps_over_ten_million_offsets_do_not_fit_but_stay_small() -> None:
    dice = random.Random(1)
    pages = [PageState(number, dice.randbytes(PAGE // 8)) for number in range(10_000_000 // PAGE)]
    progress = LaneProgress(0, pages)
    assert to_metadata(progress.pages()) is None
    assert progress.size_bytes < 2_000_000
    assert progress.changed() == []
    progress.finish(
        next(each for each in range(9 * PAGE, 10 * PAGE) if not progress.is_finished(each))
    )
    assert progress.changed() != []
    progress.mark_saved()
    assert progress.changed() == []


@pytest.mark.parametrize("text", ["x", "p1:!!", "p1:abcde", "p2:abc"])
def test_foreign_metadata_is_refused(text: str) -> None:
    with pytest.raises(UnreadableProgress):
        from_metadata(text)


def test_metadata_is_bounded() -> None:
    dice = random.Random(2)
    for count in range(1, 4000, 250):
        bits = bytearray(PAGE // 8)
        for _ in range(count):
            bits[dice.randrange(len(bits))] |= 1 << dice.randrange(8)
        text = to_metadata([PageState(0, bytes(bits))])
        assert text is None or len(text) <= MOST_METADATA
        if text is not None:
            assert from_metadata(text) == [PageState(0, bytes(bits))]
