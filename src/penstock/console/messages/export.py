"""Exports records as JSON lines, which `penstock produce` and the import read, or as CSV. Pure."""

import csv
import io
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from penstock.client.consume import ConsumedRecord
from penstock.console.messages.search import Hit
from penstock.console.messages.view import header_name
from penstock.record_view.formula import marked
from penstock.record_view.record_row import record_row, spelled
from penstock.record_view.timestamp import iso_time
from penstock.types import TopicPartition

COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "timestamp",
    "key",
    "key_format",
    "value",
    "value_format",
    "headers",
)
Write: TypeAlias = Callable[[str, Iterable[Hit]], bytes]


def json_lines(topic: str, hits: Iterable[Hit]) -> bytes:
    rows = (
        record_row(ConsumedRecord(TopicPartition(topic, each.partition), each.record))
        for each in hits
    )
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def csv_lines(topic: str, hits: Iterable[Hit]) -> bytes:
    """Each key and value has a format column (text, hex or null), because an empty cell could be
    null or empty.

    A `'` is put before text that a spreadsheet would take for a formula.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    for each in hits:
        record = each.record
        headers = [
            {"key": header_name(name), **spelled("value", value)} for name, value in record.headers
        ]
        writer.writerow(
            (
                topic,
                each.partition,
                record.offset,
                record.timestamp,
                iso_time(record.timestamp) or "",
                *_cell(record.key),
                *_cell(record.value),
                msgspec.json.encode(headers).decode() if headers else "",
            )
        )
    return out.getvalue().encode(errors="replace")


def _cell(data: bytes | None) -> tuple[str, str]:
    if data is None:
        return "", "null"
    try:
        return marked(data.decode()), "text"
    except UnicodeDecodeError:
        return data.hex(), "hex"


FORMATS: Final[dict[str, tuple[str, bytes, Write]]] = {
    "jsonl": ("application/x-ndjson", b"", json_lines),
    "csv": ("text/csv; charset=utf-8", ",".join(COLUMNS).encode() + b"\r\n", csv_lines),
}
"""Media type, first line and writer, by format."""
