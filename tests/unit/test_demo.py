"""The demo shows its figures in order, in whatever order they arrive."""

from datetime import datetime
from itertools import permutations

from demo import Minutes


def test_minutes_are_shown_in_order_of_time() -> None:
    rows = [{"minute": f"2026-01-01 {text}"} for text in ("23:58", "23:59")]
    rows += [{"minute": f"2026-01-02 {text}"} for text in ("00:00", "00:01")]
    for given in permutations(rows):
        minutes = Minutes(datetime(2026, 1, 1, 23, 58))  # noqa: DTZ001  as they are written
        assert [shown for row in given for shown in minutes.add(row)] == rows
