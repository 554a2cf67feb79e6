"""Formats of Java's SimpleDateFormat, against what Java prints."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.kafka_tools.java_date import USUAL, java_date
from penstock.kafka_tools.tool import ToolError

AT = datetime(2026, 3, 7, 15, 4, 5, 67_000, UTC)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (USUAL, "2026-03-07 15:04:05:067"),
        ("yy/M/d H:m:s.S", "26/3/7 15:4:5.67"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-03-07T15:04:05.067Z"),
        ("EEE, d MMM yyyy hh:mm a", "Sat, 7 Mar 2026 03:04 PM"),
        ("EEEE MMMM", "Saturday March"),
        ("HH 'o''clock' ''", "15 o'clock '"),
        ("D u k K Z", "66 6 15 3 +0000"),
    ],
)
def test_a_time_is_formatted_as_in_java(pattern: str, text: str) -> None:
    assert java_date(pattern, AT) == text


def test_time_zones_are_formatted_as_in_java() -> None:
    at = AT.replace(tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert java_date("X XX XXX", at) == "+05 +0530 +05:30"


@pytest.mark.parametrize(
    ("pattern", "why"), [("HH 'x", "Unterminated quote"), ("b", "Illegal pattern character 'b'")]
)
def test_a_wrong_format_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        java_date(pattern, AT)
