"""How commands print times and tables."""

import pytest

from penstock.cli.frame.terminal import warn
from penstock.cli.output import iso_time, print_table


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, None),
        ((1 << 63) - 1, None),
        (-1, None),
    ],
)
def test_a_time_is_iso_8601_in_utc(timestamp_ms: int, text: str | None) -> None:
    assert iso_time(timestamp_ms) == text


def test_columns_are_as_wide_as_needed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "N"), [("a-long-name", 1), ("b", "")])
    assert capsys.readouterr().out == "NAME         N\na-long-name  1\nb\n"
    print_table(("NAME", "N"), [])
    assert capsys.readouterr().out == "NAME  N\n"


def test_text_from_others_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A dead letter's headers may contain any origin, and an error of many lines."""
    print_table(("ORIGIN", "ERROR"), [("\x1b[2Jpay", "lost\nall is well")])
    assert capsys.readouterr().out == "ORIGIN      ERROR\n\\x1b[2Jpay  lost\\nall is well\n"
    warn("topic \x1b[2Jpay\nall is well")
    assert capsys.readouterr().err == "penstock: warning: topic \\x1b[2Jpay\\nall is well\n"
