"""A record as an object, which `consume` prints as JSON and `produce` reads.

Bytes that are not UTF-8 are in `key_base64` and `value_base64`, so that a copy of a topic has the
same bytes.
"""

from base64 import b64encode
from typing import Any

from penstock.client.consume import ConsumedRecord
from penstock.record_view.decoded import Decoded
from penstock.record_view.timestamp import iso_time


def record_row(
    consumed: ConsumedRecord, key: Decoded | None = None, value: Decoded | None = None
) -> dict[str, Any]:
    """A record as an object; `key` and `value` replace the bytes, with the format they were in."""
    record = consumed.record
    return {
        "topic": consumed.partition.topic,
        "partition": consumed.partition.partition,
        "offset": record.offset,
        "timestamp": iso_time(record.timestamp),
        "timestamp_ms": record.timestamp,
        **_shown("key", record.key, key),
        **_shown("value", record.value, value),
        "headers": [
            # Shows a name that is not UTF-8 with replacement characters.
            {"key": name.encode(errors="surrogateescape").decode(errors="replace")}
            | spelled("value", value)
            for name, value in record.headers
        ],
    }


def _shown(name: str, data: bytes | None, decoded: Decoded | None) -> dict[str, Any]:
    if decoded is None:
        return spelled(name, data)
    return {name: decoded.value, f"{name}_format": decoded.format}


def spelled(name: str, data: bytes | None) -> dict[str, str | None]:
    """The bytes as text, or in base64 under another name."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": b64encode(data).decode()}
