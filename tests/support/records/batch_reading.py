"""What Penstock reads in a batch, in the format in which Batches.java prints what Kafka reads."""

from hashlib import sha256

from penstock.record.batch import read_header
from penstock.record.record import records

LIMIT_BYTES = 1 << 20


def reading(batch: bytes | bytearray) -> dict[str, object]:
    header = read_header(batch)
    return {
        "base_offset": header.base_offset,
        "size_bytes": header.size_bytes,
        "leader_epoch": header.leader_epoch,
        "crc": header.crc,
        "codec": header.codec.name.lower(),
        "is_log_append_time": header.is_log_append_time,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "last_offset": header.last_offset,
        "next_offset": header.next_offset,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "record_count": header.record_count,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": _told(record.key),
                "value": _told(record.value),
                "headers": [[_told(key.encode()), _told(value)] for key, value in record.headers],
            }
            for record in records(batch, header, LIMIT_BYTES)
        ],
    }


def _told(data: bytes | None) -> str | None:
    if data is None:
        return None
    return data.hex() if len(data) <= 1000 else f"sha256 {sha256(data).hexdigest()}"
