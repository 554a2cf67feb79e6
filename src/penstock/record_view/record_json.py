"""Parses a line of JSON to a record, for `produce`; `record_row` is the reverse."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Annotated

import msgspec

from penstock.client.position import iso_ms
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
    """A line that `produce` reads; it ignores `topic`, `offset` and formats.

    A key or value that is not a string is written as its JSON. Unknown fields are errors: a
    misspelt `value` would otherwise be a tombstone.
    """

    key: msgspec.Raw = NULL
    key_base64: str | None = None
    value: msgspec.Raw = NULL
    value_base64: str | None = None
    headers: list[HeaderLine] | dict[str, str | None] = []
    """As `consume` prints them, or by name if each name occurs once."""
    partition: Annotated[int, msgspec.Meta(ge=0, le=MAX_PARTITION)] | None = None
    timestamp_ms: Annotated[int, msgspec.Meta(ge=-1, le=MAX_TIMESTAMP_MS)] | None = None
    timestamp: str | None = None
    """Only used without `timestamp_ms`."""
    topic: msgspec.Raw = NULL
    offset: msgspec.Raw = NULL
    key_format: msgspec.Raw = NULL
    value_format: msgspec.Raw = NULL


class BadLine(ConfigError):
    """A line that is not a record."""


def decode_record(topic: str, line: bytes, number: int) -> ProducerRecord:
    if not line.strip():
        raise BadLine(f"line {number}: it is empty, must be a JSON object such as {EXAMPLE}")
    try:
        row = msgspec.json.decode(line, type=RecordLine)
        return ProducerRecord(
            topic,
            _bytes(row.value, row.value_base64),
            _bytes(row.key, row.key_base64),
            list(_headers(row.headers)),
            row.partition,
            _time_ms(row),
        )
    except (ValueError, RecursionError) as error:
        raise BadLine(f"line {number}: {error}") from None


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


def _headers(
    headers: list[HeaderLine] | dict[str, str | None],
) -> Iterator[tuple[str, bytes | None]]:
    if isinstance(headers, dict):
        headers = [HeaderLine(name, value) for name, value in headers.items()]
    for each in headers:
        yield each.key, header_value(each)


def decode_headers(text: str) -> list[tuple[str, bytes | None]]:
    """Parse a JSON list of `HeaderLine`."""
    return list(_headers(msgspec.json.decode(text, type=list[HeaderLine])))


def header_value(header: HeaderLine) -> bytes | None:
    if header.value_base64 is not None:
        return b64decode(header.value_base64, validate=True)
    return None if header.value is None else header.value.encode()
