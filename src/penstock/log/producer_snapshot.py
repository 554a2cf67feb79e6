"""`.snapshot`: the producers of a partition at an offset, in Kafka's ProducerSnapshot version 1.

A restart then replays the log from that offset instead of from its start.
"""

from collections.abc import Iterable
from struct import Struct

from penstock.log.corrupt import CorruptFile
from penstock.log.producer_entry import BatchMetadata, ProducerEntry
from penstock.record.crc import crc32c

VERSION = 1
_HEAD = Struct(">hIi")  # version, CRC-32C of all that follows it, count
_ENTRY = Struct(">qhiqiqiq")
ENTRY_BYTES = _ENTRY.size
_AFTER_CRC = 6


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    rows = [_encode(entry) for entry in entries]
    body = len(rows).to_bytes(4) + b"".join(rows)
    return VERSION.to_bytes(2) + crc32c(body).to_bytes(4) + body


def _encode(entry: ProducerEntry) -> bytes:
    newest = entry.batches[-1] if entry.batches else BatchMetadata(-1, -1, 0, -1)
    first_offset = entry.current_txn_first_offset
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        newest.last_sequence,
        newest.last_offset,
        newest.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        -1 if first_offset is None else first_offset,
    )


def decode_snapshot(data: bytes, what: str) -> list[ProducerEntry]:
    """The producers of a snapshot file named `what`; `CorruptFile` if its CRC is not right."""
    if len(data) < _HEAD.size:
        raise CorruptFile(what, f"has only {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptFile(what, f"has version {version}, not {VERSION}")
    if crc != crc32c(memoryview(data)[_AFTER_CRC:]):
        raise CorruptFile(what, "does not match its CRC")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(what, f"declares {count} producers in {len(data)} bytes")
    return [_decode(row) for row in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]


def _decode(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset = row
    return ProducerEntry(
        producer_id,
        epoch,
        # No offset: only a marker was seen of this epoch.
        [BatchMetadata(sequence, offset, delta, timestamp)] if offset >= 0 else [],
        coordinator_epoch,
        timestamp,
        first_offset if first_offset >= 0 else None,
    )
