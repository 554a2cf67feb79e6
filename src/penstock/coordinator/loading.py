"""Reads a partition of an internal topic, slice by slice, so that others get their turns."""

from collections.abc import Callable, Iterator

from penstock.coordinator.storage import CoordinatorLog, RawRecord
from penstock.record.batch import BatchHeader, batches
from penstock.record.control import read_marker
from penstock.record.record import records

RECORD_LIMIT_BYTES = 1 << 28

OpenTransactions = dict[int, list[RawRecord]]


def loading(
    log: CoordinatorLog, replay: Callable[[RawRecord], None], transactions: OpenTransactions
) -> Iterator[None]:
    """Replay everything up to the log's end as it is now; pauses after each slice.

    Records of a transaction count from its commit marker on; those that were aborted, never.
    Those whose transaction is open at the end are left in `transactions`.
    """
    offset, end = log.start_offset, log.end_offset
    while offset < end:
        view = memoryview(log.read(offset))
        before = offset
        for position, header in batches(view):
            batch = view[position : position + header.size_bytes]
            for raw in settled(batch, header, transactions):
                replay(raw)
            offset = header.next_offset
        if offset == before:
            return  # compaction has left no batch up to the end
        yield


def settled(
    batch: memoryview, header: BatchHeader, transactions: OpenTransactions
) -> Iterator[RawRecord]:
    """The records that hold by this batch: its own, or those that its marker commits."""
    found = records(batch, header, RECORD_LIMIT_BYTES)
    if header.is_control:
        marker = next((read_marker(each) for each in found), None)
        waiting = transactions.pop(header.producer_id, [])
        if marker is not None and marker.committed:
            yield from waiting
        return
    raw = (RawRecord(each.key or b"", each.value) for each in found)
    if header.is_transactional:
        transactions.setdefault(header.producer_id, []).extend(raw)
    else:
        yield from raw
