"""Prints records as lines, with a template, or as data, decoded if requested."""

import sys
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import click
import msgspec

from penstock.cli.decoding import Decoding, internal_view
from penstock.cli.output import chosen_format, iso_time, print_json
from penstock.client.consume import ConsumedRecord
from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.decoded import Decode, Decoded, Undecodable
from penstock.record_view.record_row import record_row
from penstock.record_view.template import printing


class RecordPrinter:
    """Prints records. `undecoded` counts keys and values that are shown raw, as decoding failed."""

    def __init__(
        self,
        output: str,
        decoding: Decoding,
        *,
        show: Sequence[bool] = (False, False, False, False, True),
        separator: str = "\t",
    ) -> None:
        self.undecoded = 0
        self._decoding = decoding
        self._is_data = output == "json"
        self._template = printing(output) if "%" in output else None
        self._columns = list(compress(COLUMNS, show))
        self._separator = separator.encode(errors="surrogateescape")
        self._internal: dict[str, Callable[[Record], dict[str, str]] | None] = {}

    def print(self, records: Sequence[ConsumedRecord]) -> None:
        if self._is_data and chosen_format() == "yaml":
            for each in records:
                print_json(self._row(each))
            return
        sys.stdout.buffer.write(b"".join(map(self._line, records)))
        sys.stdout.buffer.flush()

    def _line(self, consumed: ConsumedRecord) -> bytes:
        if self._is_data:
            return msgspec.json.encode(self._row(consumed)) + b"\n"
        shown = self._as_text(consumed)
        if self._template is not None:
            return self._template(shown.partition, shown.record)
        return self._separator.join(column(shown) for column in self._columns) + b"\n"

    def _row(self, consumed: ConsumedRecord) -> dict[str, Any]:
        internal = self._internal_of(consumed)
        if internal is not None:
            shown = internal(consumed.record)
            decoded = (_parsed(shown.get("key")), _parsed(shown.get("payload")))
            return record_row(consumed, *decoded)
        record = consumed.record
        return record_row(
            consumed,
            self._decoded(consumed, "key", record.key, self._decoding.key),
            self._decoded(consumed, "value", record.value, self._decoding.value),
        )

    def _as_text(self, consumed: ConsumedRecord) -> ConsumedRecord:
        """The record with decoded key and value: text as it is, other data as JSON."""
        record, internal = consumed.record, self._internal_of(consumed)
        if internal is not None:
            shown = internal(record)
            key, value = (_encoded(shown.get(name)) for name in ("key", "payload"))
        else:
            decoding = self._decoding
            if decoding.key is None and decoding.value is None:
                return consumed
            key = _spelled(record.key, self._decoded(consumed, "key", record.key, decoding.key))
            value = _spelled(
                record.value, self._decoded(consumed, "value", record.value, decoding.value)
            )
        decoded = Record(record.offset, record.timestamp, key, value, record.headers)
        return ConsumedRecord(consumed.partition, decoded)

    def _decoded(
        self, consumed: ConsumedRecord, name: str, data: bytes | None, decode: Decode | None
    ) -> Decoded | None:
        if data is None or decode is None:
            return None
        try:
            return decode(data)
        except Undecodable as error:
            self.undecoded += 1
            where = f"{consumed.partition} at {consumed.record.offset}"
            click.echo(f"penstock: {name} of {where}: {error}", err=True)
            return None

    def _internal_of(self, consumed: ConsumedRecord) -> Callable[[Record], dict[str, str]] | None:
        topic = consumed.partition.topic
        if topic not in self._internal:
            self._internal[topic] = internal_view(topic)
        return self._internal[topic]


def _parsed(text: str | None) -> Decoded | None:
    if text is None:
        return None
    try:
        return Decoded("internal", msgspec.json.decode(text))
    except msgspec.DecodeError:  # a plain sentence: a deleted record, or one of an unknown kind
        return Decoded("internal", text)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _spelled(data: bytes | None, decoded: Decoded | None) -> bytes | None:
    if decoded is None:
        return data
    if isinstance(decoded.value, str) and decoded.format in {"text", "binary"}:
        return decoded.value.encode()
    return msgspec.json.encode(decoded.value)


def _time(each: ConsumedRecord) -> bytes:
    return (iso_time(each.record.timestamp) or "-").encode()


def _position(each: ConsumedRecord) -> bytes:
    return f"{each.partition.partition}:{each.record.offset}".encode()


def _headers(each: ConsumedRecord) -> bytes:
    return b",".join(
        name.encode(errors="surrogateescape") + b"=" + _or_null(value)
        for name, value in each.record.headers
    )


def _key(each: ConsumedRecord) -> bytes:
    return _or_null(each.record.key)


def _value(each: ConsumedRecord) -> bytes:
    return _or_null(each.record.value)


def _or_null(data: bytes | None) -> bytes:
    return b"null" if data is None else data


COLUMNS: tuple[Callable[[ConsumedRecord], bytes], ...] = (_time, _position, _headers, _key, _value)


def check_template(output: str) -> None:
    """Refuse a wrong template before any request to a broker."""
    if "%" in output:
        try:
            printing(output)
        except ConfigError as error:
            raise click.BadParameter(str(error), param_hint="--format") from None
