"""By what the sink recognizes the rows of a micro-batch that it wrote before."""

import random
from itertools import combinations

import pyarrow as pa

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
    return fingerprint(sink_rows(pa.record_batch(columns), COLUMNS, now_ms).rows, len(rows))


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
