"""A task's rows are sorted within its memory limit."""

import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sink import ordering
from penstock.spark.sink.ordering import in_order

some_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=60)


def batches(rows: list[tuple[int, int]], size: int) -> list[pa.RecordBatch]:
    cut = [rows[at : at + size] for at in range(0, len(rows), size)]
    return [
        pa.record_batch(
            {
                "part": pa.array([part for part, _ in each], pa.int32()),
                "offset": pa.array([offset for _, offset in each], pa.int64()),
                "text": [f"{part}:{offset}:{at}" for at, (part, offset) in enumerate(each)],
            }
        )
        for each in cut
    ]


def flat(found: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in found for row in batch.to_pylist()]


@given(rows=some_rows, size=st.integers(1, 20), chunk=st.integers(1, 30), in_file=st.booleans())
def test_rows_are_sorted_and_equal_ones_keep_their_order(
    rows: list[tuple[int, int]], size: int, chunk: int, in_file: bool
) -> None:
    given_rows = batches([(9, 9), (0, 0), *rows], size + 1)
    before = ordering.CHUNK_ROWS
    ordering.CHUNK_ROWS = chunk  # type: ignore[misc]  # so that few rows make many chunks
    try:
        found = flat(list(in_order(given_rows, (0, 1), 0 if in_file else 1 << 20)))
    finally:
        ordering.CHUNK_ROWS = before  # type: ignore[misc]
    expected = sorted(flat(given_rows), key=lambda row: (row["part"], row["offset"]))
    assert found == expected


def test_many_rows_of_one_partition_pass_through_at_once() -> None:
    given_rows = batches([(3, at) for at in range(40)], 10)
    coming = iter(given_rows)
    found = in_order(coming, (0, 1), held_bytes=given_rows[0].nbytes)
    assert next(found) is given_rows[0]
    assert next(coming) is given_rows[2]
    assert list(found) == [given_rows[1], given_rows[3]]


@pytest.mark.parametrize("late", [(3, 5), (2, 50), (4, 50)])
def test_rows_that_break_the_order_late_are_sorted_among_themselves(late: tuple[int, int]) -> None:
    run = [(3, at) for at in range(20)]
    given_rows = batches([*run, late, (3, 30), (3, 25)], 5)
    found = flat(list(in_order(given_rows, (0, 1), held_bytes=0)))
    partitions = [(row["part"], row["offset"]) for row in found]
    assert partitions == [*run, *sorted([late, (3, 30), (3, 25)])]


def test_rows_in_order_pass_through() -> None:
    given_rows = batches([(0, 1), (0, 2), (1, 0), (1, 1)], 2)
    found = list(in_order(given_rows, (0, 1)))
    assert all(each is one for each, one in zip(found, given_rows, strict=True))


def test_sorting_in_a_file_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dice = random.Random(1)
    rows = [(dice.randrange(3), at) for at in range(5_000)]
    found = in_order(batches(rows, 700), (0, 1), held_bytes=1_000)
    first = next(found)
    assert list(tmp_path.iterdir())
    assert first.num_rows + sum(batch.num_rows for batch in found) == 5_000
    assert not list(tmp_path.iterdir())
