"""Avro values, by fastavro."""

from collections.abc import Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.errors import ConfigError
from penstock.record_view.avro_hazards import (
    contains_itself,
    has_items_without_bytes,
    takes_no_bytes,
)
from penstock.record_view.decoded import Decode, Decoded, Undecodable, plain
from penstock.record_view.extra import library

CONTAINER = b"Obj\x01"
"""The first bytes of an Avro file; some producers send whole files as values."""
MOST_ROWS: Final = 10_000
COMPRESSED_BYTES: Final = 16 * 1024
"""Larger files are not decompressed: this many bytes may already expand to 16 MiB."""


def avro_decoder(schema: Any, named: Mapping[str, Any] | None = None) -> Decode:
    """Decodes with a parsed JSON schema; `named` has the types that it refers to.

    Raises `ConfigError` if the schema is wrong.
    """
    fastavro = library("fastavro", "decoding Avro")
    try:
        # Expanded, because the reader of an array or union loses its references.
        parsed = fastavro.parse_schema(schema, named_schemas=dict(named or {}), expand=bool(named))
        is_endless, is_nested = has_items_without_bytes(parsed), contains_itself(parsed)
    except Exception as error:  # noqa: BLE001  a schema is the user's; fastavro raises what it likes
        raise ConfigError(f"not an Avro schema: {error}") from None
    if is_endless:
        raise ConfigError("the Avro schema has an array whose items take no bytes")
    # The Python reader refuses values nested too deep; the compiled one would crash the process.
    reading = library("fastavro._read_py", "decoding Avro") if is_nested else fastavro

    def decode(data: bytes) -> Decoded:
        source = BytesIO(data)
        try:
            value = reading.schemaless_reader(source, parsed, None)
        except Exception as error:  # noqa: BLE001  any bytes come here
            raise Undecodable(f"not Avro of this schema: {error}") from None
        if source.read(1):
            raise Undecodable("not Avro of this schema: bytes are left over")
        return Decoded("avro", plain(value))

    return decode


def avro_file_decoder(path: Path) -> Decode:
    """Decodes with the schema in a file."""
    try:
        schema = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not an Avro schema: {error}") from None
    try:
        return avro_decoder(schema)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def decode_container(data: bytes) -> Decoded:
    """Decodes an Avro file, which includes its schema; both are untrusted."""
    reading = library("fastavro._read_py", "decoding Avro")
    try:
        file = reading.reader(BytesIO(data))
        schema = file.writer_schema
        if takes_no_bytes(schema) or has_items_without_bytes(schema):
            raise Undecodable("its schema has items that take no bytes")
        is_small = file.codec in {"deflate", "snappy"} and len(data) <= COMPRESSED_BYTES
        if file.codec != "null" and not is_small:
            raise Undecodable("it is compressed, and may be very large")
        rows = [plain(each) for each in islice(file, MOST_ROWS + 1)]
    except Exception as error:  # noqa: BLE001  any bytes come here
        raise Undecodable(f"not an Avro file: {error}") from None
    if len(rows) > MOST_ROWS:
        raise Undecodable(f"an Avro file of more than {MOST_ROWS} rows")
    return Decoded("avro", rows[0] if len(rows) == 1 else rows)
