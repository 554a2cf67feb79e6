"""Detects the format of bytes: one that decodes them without doubt, else text, else base64."""

from collections.abc import Sequence

from penstock.errors import ConfigError
from penstock.record_view.avro import CONTAINER, decode_container
from penstock.record_view.decoded import (
    Decode,
    Decoded,
    Undecodable,
    decode_base64,
    decode_json,
    decode_msgpack,
    decode_text,
)
from penstock.record_view.registry import SchemaRegistry, has_schema_id


def detecting(registry: SchemaRegistry | None = None, known: Sequence[Decode] = ()) -> Decode:
    """A decoder for any format. It tries `known` first: decoders with a given schema."""

    def decode(data: bytes) -> Decoded:
        if registry is not None and has_schema_id(data):
            return registry.decode(data)
        for each in known:
            try:
                return each(data)
            except Undecodable:
                continue
        return detected(data)

    return decode


def detected(data: bytes) -> Decoded:
    """Detect by the bytes alone. MessagePack must be a map or array: any byte is a number in it."""
    if data.lstrip()[:1] in {b"{", b"["}:
        try:
            return decode_json(data)
        except Undecodable:
            pass
    try:
        text = decode_text(data)
        if all(each.isprintable() or each.isspace() for each in text.value):
            return text
    except Undecodable:
        pass
    if data.startswith(CONTAINER):
        try:
            return decode_container(data)
        except ConfigError:  # not Avro after all, or no library for it
            pass
    try:
        found = decode_msgpack(data)
        if isinstance(found.value, dict | list):
            return found
    except Undecodable:
        pass
    return decode_base64(data)
