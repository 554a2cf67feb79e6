"""Writes records for the console: one from a form or JSON, or many from a file."""

from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.produce import (
    IdempotentProducer,
    ProducedRecord,
    ProducerRecord,
    all_written,
)
from penstock.console.change import Change, Doing
from penstock.console.messages.service import NoSuchTopic
from penstock.errors import ConfigError
from penstock.record_view.record_input import record_reader
from penstock.record_view.record_json import (
    MAX_PARTITION,
    MAX_TIMESTAMP_MS,
    BadLine,
    HeaderLine,
    header_value,
)
from penstock.record_view.record_row import spelled

IMPORT_BYTES: Final = 64 << 20
"""The largest file to import."""
IMPORT_FORMATS: Final = {"jsonl": "json", "csv": "csv", "text": "text"}
"""Format names in the URL, and the names that `penstock produce --format` has for them."""
Encoding: TypeAlias = Literal["text", "base64", "hex", "null"]


class NewHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """A header; without a value and an encoding it is null."""

    name: str
    value: str | None = None
    encoding: Encoding | None = None


class NewMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A record to write.

    A key or value that is left out is null. With an encoding other than `null`, it is empty
    instead.
    """

    topic: str
    key: str | None = None
    key_encoding: Encoding | None = None
    value: str | None = None
    value_encoding: Encoding | None = None
    headers: list[NewHeader] = []
    header_lines: str = ""
    """Headers as text, for forms: each line is `name: value`, or JSON as in exports, such as
    `{"key": "name", "value": null}`; `value_base64` takes any bytes.
    """
    partition: Annotated[int, Meta(ge=0, le=MAX_PARTITION)] | None = None
    timestamp_ms: Annotated[int, Meta(ge=0, le=MAX_TIMESTAMP_MS)] | None = None


class Written(Struct, frozen=True):
    """Where a record was written."""

    message: str
    topic: str
    partition: int
    offset: int


class Imported(Struct, frozen=True):
    """How many records of a file were written; `error` is the first broker error, if any."""

    written: int
    error: str | None = None


async def produce(doing: Doing, wanted: NewMessage) -> Written:
    await check_partition(doing.client, wanted.topic, wanted.partition)
    producer = IdempotentProducer(doing.client)
    (found,) = all_written(await producer.deliver([record_of(wanted)]))
    text = f"Written to {found.partition} at offset {found.offset}."
    return Written(text, *found.partition, found.offset)


PRODUCE: Final = Change(
    "message.produce",
    "POST",
    "/api/v1/topics/{topic}/messages",
    "Write a record.",
    NewMessage,
    produce,
    Written,
)


async def check_partition(client: Client, topic: str, partition: int | None) -> None:
    """Check that topic and partition exist: a producer would wait for a missing topic."""
    found = await client.existing_topics([topic])
    if not found:
        raise NoSuchTopic(f"there is no topic {topic}")
    if partition is not None and partition not in found[0].partitions:
        raise ConfigError(f"partition {partition}: {topic} has {len(found[0].partitions)}")


def record_of(wanted: NewMessage) -> ProducerRecord:
    headers = [
        (each.name, encoded(f"header {each.name}", each.value, each.encoding))
        for each in wanted.headers
    ]
    return ProducerRecord(
        wanted.topic,
        encoded("value", wanted.value, wanted.value_encoding),
        encoded("key", wanted.key, wanted.key_encoding),
        [*headers, *_lines(wanted.header_lines)],
        wanted.partition,
        wanted.timestamp_ms,
    )


def encoded(name: str, text: str | None, encoding: Encoding | None) -> bytes | None:
    if encoding == "null" or (encoding is None and text is None):
        return None
    try:
        match encoding:
            case "base64":
                return b64decode(text or "", validate=True)
            case "hex":
                return bytes.fromhex(text or "")
            case "text" | None:
                return (text or "").encode()
    except ValueError as error:
        raise ConfigError(f"{name} is not {encoding or 'text'}: {error}") from None


def _lines(text: str) -> Iterator[tuple[str, bytes | None]]:
    for line in text.split("\n"):
        if line.startswith("{"):
            try:
                found = msgspec.json.decode(line, type=HeaderLine)
                yield found.key, header_value(found)
            except ValueError as error:
                raise ConfigError(f"header_lines: {line!r}: {error}") from None
        elif line.strip():
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                raise ConfigError(f"header_lines: {line!r} is not NAME: VALUE")
            yield name.strip(), value.strip().encode()


def header_line(name: str, value: bytes | None) -> str:
    """A header as a line that parses back to the same header."""
    with suppress(UnicodeDecodeError):
        line = f"{name}: {(value or b'').decode()}"
        if line.isprintable() and list(_unspoilt(line)) == [(name, value)]:
            return line
    return msgspec.json.encode({"key": name, **spelled("value", value)}).decode()


def _unspoilt(line: str) -> Iterator[tuple[str, bytes | None]]:
    with suppress(ConfigError):
        yield from _lines(line)


async def import_lines(client: Client, topic: str, form: str, body: bytes) -> Imported:
    """Import a file. If any line is malformed, nothing is written."""
    if form not in IMPORT_FORMATS:
        raise ConfigError(f"format {form!r} is not one of {', '.join(IMPORT_FORMATS)}")
    await check_partition(client, topic, None)
    try:
        records = list(lines_of(topic, form, body))
    except BadLine as error:
        raise ConfigError(f"nothing was written: {error}") from None
    for partition in {each.partition for each in records}:
        await check_partition(client, topic, partition)
    results = await IdempotentProducer(client).deliver(records)
    written = sum(isinstance(each, ProducedRecord) for each in results)
    failed = next((each for each in results if isinstance(each, BrokerRefused)), None)
    return Imported(written, None if failed is None else str(failed))


def lines_of(topic: str, form: str, body: bytes) -> Iterator[ProducerRecord]:
    reader = record_reader(IMPORT_FORMATS[form], topic)
    number = 0
    for number, line in enumerate(body.removesuffix(b"\n").split(b"\n"), 1):
        if form != "csv":  # CSV fields may contain line ends
            line = line.removesuffix(b"\r")
        if body and (found := reader.read(line, number)) is not None:
            yield found
    reader.end(number)
