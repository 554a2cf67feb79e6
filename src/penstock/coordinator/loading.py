"""Replays a partition of an internal topic in slices, so that the loop serves others in between."""

from collections.abc import Iterator
from typing import Protocol

from penstock.coordinator.storage import CoordinatorLog, RawRecord
from penstock.errors import ProtocolError
from penstock.record.batch import BatchHeader, batches
from penstock.record.control import read_marker
from penstock.record.record import records

RECORD_LIMIT_BYTES = 1 << 28


class CoordinatorPlayback(Protocol):
    """Receives the contents of the log, in log order."""

    def replay(self, raw: RawRecord) -> None:
        """A record outside of transactions."""

    def replay_pending(self, producer_id: int, raw: RawRecord) -> None:
        """A record of the producer's open transaction."""

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A marker: the producer's transaction has ended."""

    def skip(self, offset: int, error: ProtocolError) -> None:
        """The record at `offset` cannot be read; later records can."""


def loading(log: CoordinatorLog, playback: CoordinatorPlayback) -> Iterator[None]:
    """Replay everything up to the present end of the log; yields after each slice."""
    offset, end = log.start_offset, log.end_offset
    while offset < end:
        view = memoryview(log.read(offset))
        before = offset
        for position, header in batches(view):
            _replay(view[position : position + header.size_bytes], header, playback)
            offset = header.next_offset
        if offset == before:
            return  # compaction has removed every batch up to the end
        yield


def _replay(batch: memoryview, header: BatchHeader, playback: CoordinatorPlayback) -> None:
    found = records(batch, header, RECORD_LIMIT_BYTES)
    if header.is_control:
        marker = next((read_marker(each) for each in found), None)
        committed = marker is not None and marker.committed
        playback.end_transaction(header.producer_id, committed=committed)
        return
    for each in found:
        raw = RawRecord(each.key or b"", each.value)
        try:
            if header.is_transactional:
                playback.replay_pending(header.producer_id, raw)
            else:
                playback.replay(raw)
        except ProtocolError as error:
            # One foreign record must not make all groups of its partition unavailable for good.
            playback.skip(each.offset, error)
