"""Records are picked by CEL."""

import pytest

from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.detect import detected
from penstock.record_view.filter import RecordFilter, record_filter
from penstock.types import TopicPartition

PLACE = TopicPartition("t", 3)
RECORD = Record(
    7, 1_700_000_000_123, b"k1", b'{"amount": 120.5, "tags": ["a"], "n": 3}', [("h", b"x")]
)


def compiled(expression: str) -> RecordFilter:
    return record_filter(expression, detected, detected)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("value.amount > 100", True),
        ('value.n == 3 && key.startsWith("k")', True),
        ('"a" in value.tags', True),
        ('headers["h"] == "y"', False),
        ('topic == "t" && partition == 3 && offset == 7', True),
        ('timestamp > timestamp("2024-01-01T00:00:00Z")', False),
        ("timestamp_ms < 1700000000124", True),
        ("has(value.missing) && value.missing > 1", False),
        ("value == null", False),
    ],
)
def test_an_expression_sees_the_whole_record(expression: str, wanted: bool) -> None:
    assert compiled(expression).matches(PLACE, RECORD) is wanted


def test_a_tombstone_has_no_value() -> None:
    tombstone = Record(0, 0, b"k", None, [])
    assert compiled("value == null").matches(PLACE, tombstone)


def test_a_record_that_does_not_fit_is_left_out_and_counted() -> None:
    wanted = compiled("value.amount > 100")
    assert not wanted.matches(PLACE, Record(9, 0, None, b"text", []))
    assert not wanted.matches(PLACE, Record(10, 0, None, b"{}", []))
    assert wanted.failures == 2
    assert wanted.first_failure.startswith("t-3 at 9: ")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("value.amount >", "is not CEL"),
        ("", "is not CEL"),
        ("nothing == 1", "there are topic, partition, offset"),
        ("key", "is a str, must be true or false"),
    ],
)
def test_a_wrong_expression_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        compiled(expression).matches(PLACE, RECORD)
