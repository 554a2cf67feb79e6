"""The rows of a task in the order of some columns, whatever order Spark brought them in.

All of a task's rows have to be there before the first is known, so those beyond a limit wait in a
file. Rows that come in order are given back as they came.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HELD_BYTES: Final = 64 * 1024 * 1024
"""What a task keeps in memory of rows that wait for their order."""
CHUNK_ROWS: Final = 10_000


def in_order(
    batches: Iterable[pa.RecordBatch], order: Sequence[int], held_bytes: int = HELD_BYTES
) -> Iterator[pa.RecordBatch]:
    """The same rows, ordered by these columns; equal ones stay as they came."""
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
    with tempfile.TemporaryDirectory(prefix="penstock-sink-") as folder:
        file = Path(folder, "rows.arrow")
        with pa.ipc.new_file(file, held[0].schema) as writer:
            for batch in held:
                writer.write_batch(batch)
            held.clear()
            for batch in coming:
                writer.write_batch(batch)
        # The kernel brings pages in, and takes them away, as they are looked at.
        with pa.memory_map(str(file)) as mapped:
            reader = pa.ipc.open_file(mapped)
            waiting = [reader.get_batch(at) for at in range(reader.num_record_batches)]
            yield from _sorted(waiting, order)


def _sorted(batches: Sequence[pa.RecordBatch], order: Sequence[int]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    keys = [f"{at}" for at in range(len(order))]
    columns = pa.table(
        [pa.chunked_array([batch.column(position) for batch in batches]) for position in order],
        names=keys,
    )
    wanted = [(key, "ascending") for key in keys]
    indices = np.asarray(pc.sort_indices(columns, sort_keys=wanted).to_numpy(), np.int64)
    if bool((indices[1:] > indices[:-1]).all()):
        yield from batches
        return
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    for at in range(0, len(indices), CHUNK_ROWS):
        yield _picked(batches, starts, indices[at : at + CHUNK_ROWS])


def _picked(
    batches: Sequence[pa.RecordBatch],
    starts: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int64],
) -> pa.RecordBatch:
    """The rows of these numbers, counted over all batches; only those batches are touched."""
    owners = np.searchsorted(starts, indices, side="right") - 1
    by_owner = np.argsort(owners, kind="stable")
    pieces = []
    for owner in np.unique(owners):
        rows = indices[by_owner][owners[by_owner] == owner] - starts[owner]
        pieces.append(batches[owner].take(pa.array(rows)))
    # The pieces lie one after the other, batch by batch; back to where each row belongs.
    back = np.empty(len(indices), np.int64)
    back[by_owner] = np.arange(len(indices))
    together = pa.Table.from_batches(pieces).combine_chunks().take(pa.array(back))
    (whole,) = together.combine_chunks().to_batches()
    return whole
