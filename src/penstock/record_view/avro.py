"""Avro values, by fastavro."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import ConfigError
from penstock.record_view.decoded import Decode, Decoded, Undecodable, plain
from penstock.record_view.extra import library

CONTAINER = b"Obj\x01"
"""How an Avro file begins; some producers send whole files as values."""


def avro_decoder(schema: Any, named: Mapping[str, Any] | None = None) -> Decode:
    """By a parsed JSON schema; `named` has the types that it refers to. `ConfigError` if wrong."""
    fastavro = library("fastavro", "decoding Avro")
    try:
        # Expanded, because a reader of an array or union forgets what it refers to.
        parsed = fastavro.parse_schema(schema, named_schemas=dict(named or {}), expand=bool(named))
    except Exception as error:  # noqa: BLE001  a schema is the user's; fastavro raises what it likes
        raise ConfigError(f"not an Avro schema: {error}") from None

    def decode(data: bytes) -> Decoded:
        source = BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, parsed, None)
        except Exception as error:  # noqa: BLE001  any bytes come here
            raise Undecodable(f"not Avro of this schema: {error}") from None
        if source.read(1):
            raise Undecodable("not Avro of this schema: bytes are left over")
        return Decoded("avro", plain(value))

    return decode


def avro_file_decoder(path: Path) -> Decode:
    """By the schema in a file."""
    try:
        schema = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: not an Avro schema: {error}") from None
    try:
        return avro_decoder(schema)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def decode_container(data: bytes) -> Decoded:
    """An Avro file, which has its schema in it."""
    fastavro = library("fastavro", "decoding Avro")
    try:
        rows = [plain(each) for each in fastavro.reader(BytesIO(data))]
    except Exception as error:  # noqa: BLE001  any bytes come here
        raise Undecodable(f"not an Avro file: {error}") from None
    return Decoded("avro", rows[0] if len(rows) == 1 else rows)
