"""Reads a partition of an internal topic, slice by slice, so that others get their turns."""

from collections.abc import Iterator
from typing import Protocol

from penstock.coordinator.storage import CoordinatorLog, RawRecord
from penstock.errors import ProtocolError
from penstock.record.batch import BatchHeader, batches
from penstock.record.control import read_marker
from penstock.record.record import records

RECORD_LIMIT_BYTES = 1 << 28


class Reader(Protocol):
    """Who hears of what the log holds, in its order."""

    def replay(self, raw: RawRecord) -> None:
        """A record outside of transactions."""

    def pend(self, producer_id: int, raw: RawRecord) -> None:
        """A record of the producer's open transaction."""

    def end(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction is over."""

    def skipped(self, offset: int, why: ProtocolError) -> None:
        """The record there cannot be read; those after it can."""


def loading(log: CoordinatorLog, reader: Reader) -> Iterator[None]:
    """Read everything up to the log's end as it is now; pauses after each slice."""
    offset, end = log.start_offset, log.end_offset
    while offset < end:
        view = memoryview(log.read(offset))
        before = offset
        for position, header in batches(view):
            _read(view[position : position + header.size_bytes], header, reader)
            offset = header.next_offset
        if offset == before:
            return  # compaction has left no batch up to the end
        yield


def _read(batch: memoryview, header: BatchHeader, reader: Reader) -> None:
    found = records(batch, header, RECORD_LIMIT_BYTES)
    if header.is_control:
        marker = next((read_marker(each) for each in found), None)
        reader.end(header.producer_id, committed=marker is not None and marker.committed)
        return
    for each in found:
        raw = RawRecord(each.key or b"", each.value)
        try:
            if header.is_transactional:
                reader.pend(header.producer_id, raw)
            else:
                reader.replay(raw)
        except ProtocolError as error:
            # One foreign record must not take all groups of its partition away for good.
            reader.skipped(each.offset, error)
