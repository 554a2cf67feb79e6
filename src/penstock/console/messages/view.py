"""A record as pages and the REST API show it. Pure."""

import json
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from penstock.console.messages.search import Hit
from penstock.record.batch import BatchHeader
from penstock.record.record import Record
from penstock.record_view.decoded import Decode, Decoded
from penstock.record_view.timestamp import iso_time

CUT_CHARACTERS: Final = 4096
"""The most characters of a key, value or header in a list; a record's own page shows more."""
MOST_LEVELS: Final = 200
"""Deeper JSON could be decoded in a thread, but not encoded later, where the stack is deeper."""
INDENTED: Final = json.JSONEncoder(ensure_ascii=False, indent=2)
NULL: Final = "null"
EMPTY: Final = "empty"


class Part(Struct, frozen=True):
    """A key, a value or a header's value, and its detected format.

    `value` is JSON data, text or hexadecimal digits; if it is cut, the beginning as text. The
    format is `null` (size -1) or `empty` (size 0) if there are no bytes.
    """

    format: str
    size_bytes: int
    value: Any
    is_cut: bool = False


class Header(Struct, frozen=True):
    """A header; names may repeat."""

    name: str
    part: Part


class Message(Struct, frozen=True):
    """A record with its key, value and headers decoded."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp: str | None
    key: Part
    value: Part
    headers: list[Header]


class MessageBatch(Struct, frozen=True):
    """The header of a record's batch; a producer id of -1: not idempotent."""

    base_offset: int
    last_offset: int
    records: int
    size_bytes: int
    compression: str
    timestamp_type: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool


class MessageDetail(Struct, frozen=True):
    """A whole record and its batch."""

    message: Message
    batch: MessageBatch


class MessagePage(Struct, frozen=True):
    """Records that a search found, and its progress.

    Without `cursor` the search is done, and `matches` counts all records that it found.
    `warning` is set if the expression did not fit some of the records searched for this page.
    """

    messages: list[Message]
    cursor: str | None
    scanned: int
    total: int
    matches: int
    left_ms: int
    warning: str


class Followed(Struct, frozen=True):
    """An event: new records, and the number of others that were left out."""

    messages: list[Message]
    left_out: int


def part(data: bytes | None, decode: Decode, cut: int | None = CUT_CHARACTERS) -> Part:
    if data is None:
        return Part(NULL, -1, None)
    if not data:
        return Part(EMPTY, 0, "")
    found = decode(data)
    if found.format == "json" and is_deep(data, found.value):
        found = Decoded("text", data.decode(errors="replace"))
    if cut is not None and len(data) > cut:
        text = shown(found.value)
        if len(text) > cut:
            return Part(found.format, len(data), text[:cut], is_cut=True)
    return Part(found.format, len(data), found.value)


def is_deep(data: bytes, value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether JSON is nested deeper than `levels`; counting brackets first is faster,
    and usually enough.
    """
    return data.count(b"[") + data.count(b"{") > levels and _is_deeper(value, levels)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def shown(value: Any) -> str:
    """A decoded value as text: indented, unless it is nested so deeply that most of the text
    would be spaces.
    """
    if isinstance(value, str):
        return value
    short = json.dumps(value, ensure_ascii=False)
    left, found = 8 * len(short) + CUT_CHARACTERS, list[str]()
    for each in INDENTED.iterencode(value):
        left -= len(each)
        if left < 0:
            return short
        found.append(each)
    return "".join(found)


def message(
    topic: str, partition: int, record: Record, decode: Decode, cut: int | None = CUT_CHARACTERS
) -> Message:
    return Message(
        topic,
        partition,
        record.offset,
        record.timestamp,
        iso_time(record.timestamp),
        part(record.key, decode, cut),
        part(record.value, decode, cut),
        [Header(header_name(name), part(value, decode, cut)) for name, value in record.headers],
    )


def messages_of(topic: str, hits: Iterable[Hit], decode: Decode) -> list[Message]:
    return [message(topic, each.partition, each.record, decode) for each in hits]


def header_name(name: str) -> str:
    """A header's name as text; bytes that are not UTF-8 become replacement characters."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def detail(topic: str, hit: Hit, decode: Decode, cut: int | None) -> MessageDetail:
    return MessageDetail(
        message(topic, hit.partition, hit.record, decode, cut), batch_of(hit.header)
    )


def batch_of(header: BatchHeader) -> MessageBatch:
    return MessageBatch(
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.size_bytes,
        header.codec.name.lower(),
        "LogAppendTime" if header.is_log_append_time else "CreateTime",
        header.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
    )
