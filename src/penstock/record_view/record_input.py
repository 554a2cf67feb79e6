"""Parses lines of input to records: text, JSON, CSV, or kcat's percent language."""

import csv
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from penstock.client.position import iso_ms
from penstock.client.produce import ProducerRecord
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.record_view.formula import unmarked
from penstock.record_view.record_json import (
    MAX_TIMESTAMP_MS,
    BadLine,
    decode_headers,
    decode_record,
)
from penstock.record_view.template import LineFields, NoMatch, reading

LONGEST_BYTES: Final = 100_000_000
"""Brokers reject larger requests by default: socket.request.max.bytes is 104857600."""
FORMATS: Final = ("text", "json", "ndjson", "csv")
HEADER: Final = "header."
COLUMNS: Final = frozenset({"key", "value", "partition", "timestamp", "timestamp_ms"})

ReadLine: TypeAlias = Callable[[bytes, int], ProducerRecord]


class InputReader(Protocol):
    """Reads the lines of a file, each with its number; raises `BadLine`."""

    def read(self, line: bytes, number: int) -> ProducerRecord | None:
        """None if the line is not a record, or continues on the next line."""
        ...

    def end(self, number: int) -> None:
        """The file has ended after this line."""
        ...


def record_reader(
    form: str,
    topic: str,
    *,
    separator: str | None = None,
    tombstones: bool = False,
    key_field: str | None = None,
) -> InputReader:
    """A reader for one file. A form with a `%` is a template."""
    read: ReadLine
    if form == "csv":
        return CsvReader(topic)
    if form == "json":

        def read(line: bytes, number: int) -> ProducerRecord:
            return decode_record(topic, line, number)

    elif form == "ndjson":

        def read(line: bytes, number: int) -> ProducerRecord:
            return ndjson_record(topic, line, number, key_field)

    elif "%" in form:
        fields = reading(form)

        def read(line: bytes, number: int) -> ProducerRecord:
            try:
                return _templated(topic, fields(line), tombstones=tombstones)
            except NoMatch as error:
                raise BadLine(f"line {number}: {error}") from None

    else:

        def read(line: bytes, number: int) -> ProducerRecord:
            return text_record(topic, line, number, separator, tombstones=tombstones)

    return LineReader(read)


class LineReader:
    """Each line is a record."""

    def __init__(self, read: ReadLine) -> None:
        self._read = read

    def read(self, line: bytes, number: int) -> ProducerRecord:
        if len(line) > LONGEST_BYTES:
            raise BadLine(f"line {number}: longer than {LONGEST_BYTES} bytes")
        return self._read(line, number)

    def end(self, number: int) -> None:
        """Nothing to do: a record never spans several lines."""


def text_record(
    topic: str, line: bytes, number: int, separator: str | None, *, tombstones: bool
) -> ProducerRecord:
    key, value = None, line
    if separator is not None:
        key, found, value = line.partition(separator.encode())
        if not found:
            raise BadLine(f"line {number}: no {separator!r} between key and value")
    return ProducerRecord(topic, None if tombstones and not value else value, key)


def ndjson_record(topic: str, line: bytes, number: int, key_field: str | None) -> ProducerRecord:
    """The whole line is the value; `key_field`, such as `a.b`, names the key in it."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(f"line {number}: not JSON: {error}") from None
    if key_field is None:
        return ProducerRecord(topic, line)
    for name in key_field.split("."):
        if not isinstance(value, dict) or name not in value:
            raise BadLine(f"line {number}: it has no field {key_field}")
        value = value[name]
    return ProducerRecord(topic, line, _field_bytes(value))


def _field_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return msgspec.json.encode(value)


def _templated(topic: str, fields: LineFields, *, tombstones: bool) -> ProducerRecord:
    return ProducerRecord(
        fields.topic or topic,
        None if tombstones and not fields.value else fields.value,
        fields.key,
        fields.headers,
        fields.partition,
        fields.timestamp_ms,
    )


class CsvReader:
    """The first line names the columns: key, value, partition, timestamp, header.NAME.

    Without a column `value`, the other columns are the value, as a JSON object. A quoted field may
    span several lines. The columns `key_format`, `value_format` and `headers` of the console's
    exports say how to read the others.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._columns: list[str] | None = None
        self._begun: list[str] = []
        self._begun_bytes = 0
        self._is_quoted = False
        csv.field_size_limit(LONGEST_BYTES)  # a field may be as large as a broker accepts

    def read(self, line: bytes, number: int) -> ProducerRecord | None:
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadLine(f"line {number}: it is not UTF-8") from None
        self._begun.append(text)
        self._begun_bytes += len(line)
        self._is_quoted ^= text.count('"') % 2 == 1
        if self._begun_bytes > LONGEST_BYTES:
            self._taken()
            raise BadLine(f"line {number}: longer than {LONGEST_BYTES} bytes")
        if self._is_quoted:
            return None  # the field continues
        self._begun[-1] = text.rstrip("\r")  # the record's line end; a field keeps its own
        try:
            cells = next(csv.reader([self._taken()]), [])
        except csv.Error as error:
            raise BadLine(f"line {number}: {error}") from None
        if self._columns is None:
            self._columns = cells
            _check_columns(cells, number)
            return None
        if not cells:
            return None
        if len(cells) != len(self._columns):
            fields = counted(len(cells), "field")
            raise BadLine(f"line {number}: {fields}, the header has {len(self._columns)}")
        return self._record(dict(zip(self._columns, cells, strict=True)), number)

    def _taken(self) -> str:
        """The lines of the unfinished record; starts the next one."""
        text = "\n".join(self._begun)
        self._begun, self._begun_bytes, self._is_quoted = [], 0, False
        return text

    def end(self, number: int) -> None:
        if self._begun:
            raise BadLine(f"line {number}: a quoted field does not end")

    def _record(self, row: dict[str, str], number: int) -> ProducerRecord:
        try:
            return ProducerRecord(
                self._topic,
                _value(row),
                _formatted(row, "key") if row.get("key") or _is_export(row) else None,
                _headers(row),
                int(row["partition"]) if row.get("partition") else None,
                _time(row),
            )
        except ValueError as error:
            raise BadLine(f"line {number}: {error}") from None


def _check_columns(columns: list[str], number: int) -> None:
    if len(set(columns)) < len(columns):
        raise BadLine(f"line {number}: a column has its name twice")


def _is_export(row: dict[str, str]) -> bool:
    return row.keys() >= {"key", "key_format", "value", "value_format"}


def _formatted(row: dict[str, str], name: str) -> bytes | None:
    text = row.get(name, "")
    match row[f"{name}_format"] if _is_export(row) else None:
        case "null":
            return None
        case "hex":
            return bytes.fromhex(text)
        case "text":
            return unmarked(text).encode()
        case None:
            return text.encode()
        case other:
            raise ValueError(f"{name}_format {other!r} is not one of text, hex, null")


def _headers(row: dict[str, str]) -> list[tuple[str, bytes | None]]:
    if _is_export(row) and row.get("headers"):
        return decode_headers(row["headers"])
    return [
        (name.removeprefix(HEADER), text.encode())
        for name, text in row.items()
        if name.startswith(HEADER)
    ]


def _value(row: dict[str, str]) -> bytes | None:
    if "value" in row:
        return _formatted(row, "value")
    others = {name: text for name, text in row.items() if not _is_place(name)}
    return msgspec.json.encode(others)


def _is_place(name: str) -> bool:
    return name in COLUMNS or name.startswith(HEADER)


def _time(row: dict[str, str]) -> int | None:
    text = row.get("timestamp_ms") or row.get("timestamp")
    if not text:
        return None
    if not row.get("timestamp_ms") and not (text.isascii() and text.isdigit()):
        return iso_ms(text)
    time_ms = int(text)
    if not -1 <= time_ms <= MAX_TIMESTAMP_MS:
        raise ValueError(f"{text} is not a time in ms since 1970")
    return time_ms


def check_form(form: str) -> str:
    """Return the format or template if it is valid; otherwise `ConfigError`."""
    if form not in FORMATS and "%" not in form:
        raise ConfigError(
            f"{form!r} is neither {', '.join(FORMATS)} nor a template such as '%k %s'"
        )
    if "%" in form:
        reading(form)
    return form


def several(texts: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Parse `NAME=VALUE` texts."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--header {text!r} is not NAME=VALUE")
        yield name, value.encode()
