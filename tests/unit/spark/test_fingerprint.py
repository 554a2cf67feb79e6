"""By what the sink recognizes the rows of a micro-batch that it wrote before."""

import random
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.sink.columns import sink_columns
from penstock.spark.sink.epoch import FINGERPRINTS
from penstock.spark.sink.fingerprint import fingerprint
from penstock.spark.sink.rows import sink_rows

Row = tuple[bytes | None, bytes | None]
COLUMNS = sink_columns({"key": "binary", "value": "binary"}, topic="t")
ROWS: list[Row] = [(f"{each % 7}".encode(), f"{each}".encode()) for each in range(500)]


def of(rows: list[Row], now_ms: int = 0) -> int:
    columns = {
        "key": pa.array([key for key, _ in rows], pa.binary()),
        "value": pa.array([value for _, value in rows], pa.binary()),
    }
    return fingerprint(sink_rows(pa.record_batch(columns), COLUMNS, now_ms))


def test_order_tasks_and_time_do_not_matter() -> None:
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    assert of(shuffled, now_ms=5) == of(ROWS) > 0
    assert sum(of(shuffled[at : at + 90]) for at in range(0, 500, 90)) % FINGERPRINTS == of(ROWS)
    assert of([]) == 0


def test_other_rows_have_another_fingerprint() -> None:
    few: list[list[Row]] = [
        [(None, None)],
        [(b"", None)],
        [(None, b"")],
        [(b"", b"")],
        [(b"a", b"b")],
        [(b"b", b"a")],
        [(b"a", b"b"), (b"b", b"a")],
        [(b"a", b"a"), (b"b", b"b")],
        [(b"a", b"b"), (b"a", b"b")],
        ROWS[:10],
        ROWS[1:11],
    ]
    assert all(of(one) != of(other) for one, other in combinations(few, 2))


TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
ALL = sink_columns(
    {
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "timestamp": "timestamp",
        "headers": "array<struct<key:string,value:binary>>",
    },
    topic=None,
    with_timestamps=True,
)
FIRST, SECOND = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
A, B = {"key": "a", "value": b"1"}, {"key": "b", "value": None}


def of_equal(name: str, fields: list[Any], now_ms: int = 0, start: int = 0) -> int:
    """The fingerprint of rows of one value that differ in one column only, from a row on."""
    size = len(fields)
    columns = {
        "value": pa.array([b"beat"] * size, pa.binary()),
        "topic": pa.array(["t"] * size, TYPES["topic"]),
        **{each: pa.nulls(size, TYPES[each]) for each in ("partition", "timestamp", "headers")},
        name: pa.array(fields, TYPES[name]),
    }
    names = ("value", "topic", "partition", "timestamp", "headers")
    batch = pa.record_batch({each: columns[each] for each in names}).slice(start)
    return fingerprint(sink_rows(batch, ALL, now_ms))


@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("topic", [["a", "a"], ["a", "b"], ["b", "b"]]),
        ("partition", [[None, None], [0, None], [0, 0], [0, 1], [1, 1]]),
        ("timestamp", [[None, None], [FIRST, None], [FIRST, FIRST], [FIRST, SECOND]]),
        (
            "headers",
            [[None, [A]], [[A], [A]], [[A, B], []], [[B, A], []], [[A], [B]], [[A, A], []]],
        ),
    ],
)
def test_equal_values_elsewhere_have_another_fingerprint(
    name: str, different: list[list[Any]]
) -> None:
    assert all(
        of_equal(name, one) != of_equal(name, other) for one, other in combinations(different, 2)
    )
    for fields in different:
        whole = of_equal(name, [*fields, *fields[::-1]])
        parts = [of_equal(name, fields, now_ms=5), of_equal(name, fields * 2, start=2)]
        assert whole == sum(parts) % FINGERPRINTS


def test_no_headers_are_as_good_as_null() -> None:
    assert of_equal("headers", [None]) == of_equal("headers", [[]])
