"""Finds the records of a batch that match a search, and parses few others. Pure.

Most batches have no match: `bytes.find` over the decompressed records shows that at memory speed.
On a hit, only the surrounding record is parsed and then checked, since the bytes may belong to
another field.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.console.messages.query import LARGEST, SearchedPart, SearchQuery
from penstock.record.batch import BatchHeader, declared_count
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records_of_payload
from penstock.record.varint import read_varint, write_varint
from penstock.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Criteria:
    """A query, ready to be applied to batches."""

    needle: bytes
    """Bytes that each matching record contains; if empty, every record is parsed."""
    matches: Callable[[int, Record], bool]
    """Whether a candidate record (partition, record) matches the query."""
    decodes: bool = False
    """Whether matching is slow and may block on a schema registry."""


def criteria(query: SearchQuery, fits: Callable[[TopicPartition, Record], bool] | None) -> Criteria:
    """`fits` is the compiled expression, or another condition that must hold too."""
    text, key = query.text.encode(), None if query.key is None else query.key.encode()
    holds = contains(text, query.place)
    any_time = query.since_ms <= 0 and query.until_ms == LARGEST

    def matches(partition: int, record: Record) -> bool:
        return (
            (key is None or record.key == key)
            and (any_time or query.since_ms <= record.timestamp < query.until_ms)
            and (not text or holds(record))
            and (fits is None or fits(TopicPartition(query.topic, partition), record))
        )

    return Criteria(_length(key) + key if key else text, matches, fits is not None)


def _length(data: bytes) -> bytes:
    """The varint length that precedes a key in a record. With it, a key such as `7` is
    not found everywhere.
    """
    out = bytearray()
    write_varint(out, len(data))
    return bytes(out)


def contains(text: bytes, place: SearchedPart) -> Callable[[Record], bool]:
    def in_key(record: Record) -> bool:
        return record.key is not None and text in record.key

    def in_value(record: Record) -> bool:
        return record.value is not None and text in record.value

    def in_headers(record: Record) -> bool:
        return any(
            text in name.encode(errors="surrogateescape") or (value is not None and text in value)
            for name, value in record.headers
        )

    match place:
        case "key":
            return in_key
        case "value":
            return in_value
        case "headers":
            return in_headers
        case "any":
            return lambda record: in_value(record) or in_key(record) or in_headers(record)


def candidates(payload: bytes, header: BatchHeader, needle: bytes) -> Iterator[Record]:
    """The records whose bytes contain the needle; all records if the needle is empty."""
    found = payload.find(needle)
    if found < 0:
        return
    at, alone = 0, _of_one_record(header)
    try:
        for _ in range(declared_count(header)):
            size, body = read_varint(payload, at)
            end = body + size
            if size < 0 or end > len(payload):
                raise InvalidRecord(f"record of {size} bytes, {len(payload) - body} are left")
            if found < end:
                if payload.find(needle, body, end) >= 0:
                    yield from records_of_payload(payload[at:end], alone)
                found = payload.find(needle, end)
                if found < 0:
                    return
            at = end
    except IndexError:
        raise InvalidRecord("the last record is truncated") from None


def _of_one_record(header: BatchHeader) -> BatchHeader:
    fields: list[Any] = [*header.fields()[:-1], 1]
    return BatchHeader(*fields)


def matching(
    payload: bytes, header: BatchHeader, partition: int, wanted: Criteria
) -> Iterator[Record]:
    """The matching records of a batch, in offset order."""
    for record in candidates(payload, header, wanted.needle):
        if wanted.matches(partition, record):
            yield record
