"""Sorts the rows of a task by some columns, whatever order Spark delivers them in.

Sorting needs all rows of a task, so beyond a limit they go to a temporary file. Rows that come in
order pass through.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HELD_BYTES: Final = 32 * 1024 * 1024
"""How much a task keeps in memory to sort."""
CHUNK_ROWS: Final = 10_000


def in_order(
    batches: Iterable[pa.RecordBatch], order: Sequence[int], held_bytes: int = HELD_BYTES
) -> Iterator[pa.RecordBatch]:
    """The same rows sorted by these columns; equal rows keep their order.

    Many rows of one source partition in order are assumed to be a read without a shuffle, and pass
    through at once. Should other rows follow, those are sorted among themselves: a retry may then
    see other rows first, which fails the epoch, but neither loses nor repeats a row.
    """
    held: list[pa.RecordBatch] = []
    size_bytes, coming = 0, iter(batches)
    for batch in coming:
        held.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > held_bytes:
            break
    else:
        yield from _sorted(held, order)
        return
    if not _is_one_run(held, order):
        yield from _sorted_in_file(chain(held, coming), order)
        return
    yield from held
    last = held[-1].slice(held[-1].num_rows - 1)
    held.clear()
    for batch in coming:
        if not _is_one_run([last, batch], order):
            yield from _sorted_in_file(chain([batch], coming), order)
            return
        yield batch
        last = batch.slice(batch.num_rows - 1)


def _sorted_in_file(
    batches: Iterable[pa.RecordBatch], order: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Sort the rows in a temporary file: they are too many for memory."""
    coming = iter(batches)
    first = next(coming)
    with tempfile.TemporaryDirectory(prefix="penstock-sink-") as folder:
        file = Path(folder, "rows.arrow")
        with pa.ipc.new_file(file, first.schema) as writer:
            writer.write_batch(first)
            for batch in coming:
                writer.write_batch(batch)
        # The kernel loads and evicts pages as needed.
        with pa.memory_map(str(file)) as mapped:
            reader = pa.ipc.open_file(mapped)
            waiting = [reader.get_batch(at) for at in range(reader.num_record_batches)]
            yield from _sorted(waiting, order)


def _is_one_run(batches: Sequence[pa.RecordBatch], order: Sequence[int]) -> bool:
    """Whether the rows are sorted already, and differ only in the last sort column."""
    *leading, _ = order
    return all(
        pc.count_distinct(_column(batches, each), mode="all").as_py() == 1 for each in leading
    ) and _is_increasing(_indices(batches, order))


def _sorted(batches: Sequence[pa.RecordBatch], order: Sequence[int]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    indices = _indices(batches, order)
    if _is_increasing(indices):
        yield from batches
        return
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    for at in range(0, len(indices), CHUNK_ROWS):
        yield _picked(batches, starts, indices[at : at + CHUNK_ROWS])


def _column(batches: Sequence[pa.RecordBatch], position: int) -> pa.ChunkedArray:
    return pa.chunked_array([batch.column(position) for batch in batches])


def _indices(batches: Sequence[pa.RecordBatch], order: Sequence[int]) -> npt.NDArray[np.int64]:
    """The rows' indices over all batches, sorted."""
    keys = [f"{at}" for at in range(len(order))]
    columns = pa.table([_column(batches, position) for position in order], names=keys)
    wanted = [(key, "ascending") for key in keys]
    return np.asarray(pc.sort_indices(columns, sort_keys=wanted).to_numpy(), np.int64)


def _is_increasing(indices: npt.NDArray[np.int64]) -> bool:
    return bool((indices[1:] > indices[:-1]).all())


def _picked(
    batches: Sequence[pa.RecordBatch],
    starts: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int64],
) -> pa.RecordBatch:
    """The rows with these indices over all batches; touches only the batches that hold them."""
    owners = np.searchsorted(starts, indices, side="right") - 1
    by_owner = np.argsort(owners, kind="stable")
    pieces = []
    for owner in np.unique(owners):
        rows = indices[by_owner][owners[by_owner] == owner] - starts[owner]
        pieces.append(batches[owner].take(pa.array(rows)))
    # The pieces are grouped by batch; bring each row back to its position.
    back = np.empty(len(indices), np.int64)
    back[by_owner] = np.arange(len(indices))
    together = pa.Table.from_batches(pieces).combine_chunks().take(pa.array(back))
    (whole,) = together.combine_chunks().to_batches()
    return whole
