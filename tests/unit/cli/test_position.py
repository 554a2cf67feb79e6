"""Positions in a topic as users write them: offsets, times, steps from the end."""

import pytest

from penstock.client.position import BEGINNING, END, Position, Since, parse_position, parse_time

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("0", Position(Since.ZERO, 0)),
        ("42", Position(Since.ZERO, 42)),
        ("+3", Position(Since.START, 3)),
        ("-10", Position(Since.END, -10)),
        ("@1700000000001", Position(Since.EPOCH, NOW + 1)),
        ("@-1h", Position(Since.EPOCH, NOW - 3_600_000)),
    ],
)
def test_a_position_is_read(text: str, position: Position) -> None:
    assert parse_position(text, NOW) == position


@pytest.mark.parametrize("text", ["", "soon", "1.5", "--1", "@", "@soon", "@-1w", "1" * 30])
def test_a_text_that_is_not_a_position_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_position(text, NOW)


@pytest.mark.parametrize(
    "text", ["@1960-01-01", "@1969-12-31T23:59:59.999Z", "@-20000d", "@-999999999999d"]
)
def test_a_time_before_1970_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="before 1970"):
        parse_position(text, NOW)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-15T00:13:20.123+02:00", NOW + 123),
        ("2023-11-14", 1_699_920_000_000),
        ("-90s", NOW - 90_000),
        ("-2d", NOW - 172_800_000),
        ("0", 0),
    ],
)
def test_a_time_is_read(text: str, time_ms: int) -> None:
    assert parse_time(text, NOW) == time_ms
