"""Parses a request's body into records. Pure.

| Content-Type | records |
|---|---|
| `application/x-ndjson` | each line that is not empty, as it is |
| `application/vnd.kafka.json.v2+json` | `{"records": [{"key": …, "value": …}]}`, each as JSON |
| `application/vnd.kafka.binary.v2+json` | the same, keys and values in base64 |
| any other | one: the body, as it is; `?key=` gives its key |

The two Kafka types are those of Confluent's REST proxy (v2), plus `headers`, `partition` and
`timestamp` for each record.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Annotated, Final, TypeAlias
from urllib.parse import parse_qs

import msgspec

from penstock.client.record_sender import ProducerRecord
from penstock.http.message import HttpRequest

NDJSON: Final = "application/x-ndjson"
JSON_BATCH: Final = "application/vnd.kafka.json.v2+json"
BINARY_BATCH: Final = "application/vnd.kafka.binary.v2+json"
HEADER: Final = "penstock-header-"
"""The request header `penstock-header-trace: 7` becomes the record header `trace`."""
MOST_RECORDS: Final = 100_000


class BadBody(Exception):
    """The body is invalid; the text says why, and where."""


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw = msgspec.Raw(b"null")
    key: msgspec.Raw = msgspec.Raw(b"null")
    headers: dict[str, str | None] = {}
    partition: Int32 | None = None
    timestamp: Int64 | None = None


class _Batch(msgspec.Struct):
    records: list[_Item]


_BATCH: Final = msgspec.json.Decoder(_Batch)
_TEXT: Final = msgspec.json.Decoder(str | None)


def records_of(request: HttpRequest, topic: str) -> list[ProducerRecord]:
    """The records of a request to `/topics/{name}`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A key may be any bytes, or empty.
    asked = parse_qs(request.query, keep_blank_values=True, errors="surrogateescape")
    query = {name: values[-1] for name, values in asked.items()}
    if kind in {JSON_BATCH, BINARY_BATCH}:
        records = _batch(topic, request.body, _binary if kind == BINARY_BATCH else _as_json)
    elif kind == NDJSON:
        headers = _headers(request.headers)
        lines = request.body.split(b"\n", MOST_RECORDS + 1)
        if len(lines) > MOST_RECORDS + 1:  # the last item is empty, or the start of the excess
            raise BadBody(f"more than {MOST_RECORDS} lines are too many at a time")
        records = [
            ProducerRecord(topic, each.rstrip(b"\r"), headers=headers)
            for each in lines
            if each.strip()
        ]
    else:
        key = query.get("key")
        records = [
            ProducerRecord(
                topic,
                request.body,
                None if key is None else key.encode(errors="surrogateescape"),
                _headers(request.headers),
                _partition(query.get("partition")),
            )
        ]
    if not records:
        raise BadBody("the body has no records")
    if len(records) > MOST_RECORDS:
        raise BadBody(f"{len(records)} records are too many: at most {MOST_RECORDS} at a time")
    return records


def _batch(
    topic: str, body: bytes, decode: Callable[[msgspec.Raw], bytes | None]
) -> list[ProducerRecord]:
    try:
        items = _BATCH.decode(body).records
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadBody(f"the body is not a batch of records: {error}") from None
    found = []
    for at, each in enumerate(items):
        try:
            key, value = decode(each.key), decode(each.value)
        except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
            raise BadBody(f"records[{at}]: {error}") from None
        headers = [
            (name, None if text is None else text.encode()) for name, text in each.headers.items()
        ]
        found.append(ProducerRecord(topic, value, key, headers, each.partition, each.timestamp))
    return found


def _as_json(raw: msgspec.Raw) -> bytes | None:
    """The JSON text itself, so that numbers keep all their digits; None for null."""
    data = bytes(raw).strip()
    data.decode()  # raises if it is not UTF-8: msgspec does not check raw parts
    return None if data == b"null" else data


def _binary(raw: msgspec.Raw) -> bytes | None:
    text = _TEXT.decode(raw)
    return None if text is None else base64.b64decode(text, validate=True)


def _headers(headers: Mapping[str, str]) -> list[tuple[str, bytes | None]]:
    return [
        (name.removeprefix(HEADER), value.encode("latin-1"))
        for name, value in headers.items()
        if name.startswith(HEADER)
    ]


def _partition(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise BadBody(f"partition={text!r} is not a number")
    return int(text)
