"""Records are selected by CEL expressions."""

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


@pytest.mark.parametrize(
    "expression",
    [
        '__import__("os").system("true") == 0',
        'eval("1") == 1',
        "value.__class__.__mro__ != null",
        'value.getClass().forName("java.lang.Runtime") != null',
        '"".__class__ != null',
    ],
)
def test_a_filter_reaches_nothing_but_the_record(expression: str) -> None:
    """CVE-2023-52251 and CVE-2026-5562: in other products a filter could run programs."""
    wanted = compiled(expression)
    try:
        assert not wanted.matches(PLACE, RECORD)
    except ConfigError as error:
        assert "Undefined variable or function" in str(error)  # noqa: PT017 - or it is left out
    else:
        assert wanted.failures == 1


def test_a_tombstone_has_no_value() -> None:
    tombstone = Record(0, 0, b"k", None, [])
    assert compiled("value == null").matches(PLACE, tombstone)


def test_a_record_that_does_not_fit_the_expression_is_left_out_and_counted() -> None:
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


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("size(value) == 3", True),
        ('value["n"] == 3', True),
        ("value.exists(name, name == 'tags') && value.n == 3", True),
        ("value . n == 3 && value.tags[0] == 'a'", True),
        ("'value.x' == 'value.x' && value.n == 3", True),
    ],
)
def test_an_expression_gets_the_complete_value_that_it_uses(expression: str, wanted: bool) -> None:
    assert compiled(expression).matches(PLACE, RECORD) is wanted
