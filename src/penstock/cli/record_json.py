"""A record as a line of JSON, which `consume` prints and `produce` reads.

Bytes that are not UTF-8 are in `key_base64` and `value_base64`, so that a copy of a topic has the
same bytes.
"""

from base64 import b64decode, b64encode
from typing import Annotated, Any

import msgspec

from penstock.cli.output import iso_time
from penstock.cli.position import iso_ms
from penstock.client.consume import ConsumedRecord
from penstock.client.produce import ProducerRecord
from penstock.errors import ConfigError

NULL = msgspec.Raw(b"null")
EXAMPLE = '{"key": "k", "value": "v"}'
MAX_PARTITION, MAX_TIMESTAMP_MS = (1 << 31) - 1, (1 << 63) - 1


class HeaderLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A header; names may repeat, so headers are a list."""

    key: str
    value: str | None = None
    value_base64: str | None = None


class RecordLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that `produce` reads; it ignores `topic` and `offset`.

    A key or value that is not a string is written as its JSON. Unknown fields are errors: a
    misspelt `value` would otherwise be a tombstone.
    """

    key: msgspec.Raw = NULL
    key_base64: str | None = None
    value: msgspec.Raw = NULL
    value_base64: str | None = None
    headers: list[HeaderLine] = []
    partition: Annotated[int, msgspec.Meta(ge=0, le=MAX_PARTITION)] | None = None
    timestamp_ms: Annotated[int, msgspec.Meta(ge=-1, le=MAX_TIMESTAMP_MS)] | None = None
    timestamp: str | None = None
    """Used without `timestamp_ms`."""
    topic: msgspec.Raw = NULL
    offset: msgspec.Raw = NULL


class BadLine(ConfigError):
    """A line that is not a record."""


def encode_record(consumed: ConsumedRecord) -> bytes:
    record = consumed.record
    row: dict[str, Any] = {
        "topic": consumed.partition.topic,
        "partition": consumed.partition.partition,
        "offset": record.offset,
        "timestamp": iso_time(record.timestamp),
        "timestamp_ms": record.timestamp,
        **_spelled("key", record.key),
        **_spelled("value", record.value),
        "headers": [
            # Shows a name that is not UTF-8 with replacement characters.
            {"key": name.encode(errors="surrogateescape").decode(errors="replace")}
            | _spelled("value", value)
            for name, value in record.headers
        ],
    }
    return msgspec.json.encode(row) + b"\n"


def decode_record(topic: str, line: bytes, number: int) -> ProducerRecord:
    if not line.strip():
        raise BadLine(f"line {number}: it is empty, must be a JSON object such as {EXAMPLE}")
    try:
        row = msgspec.json.decode(line, type=RecordLine)
        return ProducerRecord(
            topic,
            _bytes(row.value, row.value_base64),
            _bytes(row.key, row.key_base64),
            [(each.key, _header_value(each)) for each in row.headers],
            row.partition,
            _time_ms(row),
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise BadLine(f"line {number}: {error}") from None


def _spelled(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": b64encode(data).decode()}


def _bytes(raw: msgspec.Raw, base64: str | None) -> bytes | None:
    if base64 is not None:
        return b64decode(base64, validate=True)
    text = bytes(raw)
    if text == b"null":
        return None
    return msgspec.json.decode(text, type=str).encode() if text.startswith(b'"') else text


def _time_ms(row: RecordLine) -> int | None:
    if row.timestamp_ms is not None or row.timestamp is None:
        return row.timestamp_ms
    return iso_ms(row.timestamp)


def _header_value(header: HeaderLine) -> bytes | None:
    if header.value_base64 is not None:
        return b64decode(header.value_base64, validate=True)
    return None if header.value is None else header.value.encode()
