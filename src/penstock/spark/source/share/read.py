"""A task of a share group: fetches the range that covers its records, and keeps only those."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.client.listing import IsolationLevel
from penstock.spark.source.read import read_range
from penstock.spark.source.settings import SourceSettings
from penstock.spark.source.share.offset_ranges import OffsetRanges
from penstock.spark.source.share.task import ShareTaskRecords


def read_shared(wanted: ShareTaskRecords, settings: SourceSettings) -> Iterator[pa.RecordBatch]:
    # The group has already decided which records are visible, and hands out no others.
    everything = replace(settings.fetch, isolation=IsolationLevel.READ_UNCOMMITTED)
    for batch in read_range(wanted.covering, replace(settings, fetch=everything)):
        yield kept(batch, wanted.offsets)


def kept(batch: pa.RecordBatch, offsets: OffsetRanges) -> pa.RecordBatch:
    """The rows with these offsets."""
    if len(offsets.ranges) == 1:
        return batch
    found = batch.column("offset").to_numpy()
    starts = np.array([start for start, _ in offsets])
    ends = np.array([end for _, end in offsets])
    at = np.searchsorted(starts, found, "right") - 1
    wanted = (at >= 0) & (found < ends[at])
    # Not `pa.array`, which imports pandas first: a third of a second in each worker.
    bits = pa.py_buffer(np.packbits(wanted, bitorder="little"))
    return batch.filter(pa.Array.from_buffers(pa.bool_(), len(wanted), [None, bits]))
