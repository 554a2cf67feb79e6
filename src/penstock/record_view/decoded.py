"""A decoded key or value, and decoders that need no library."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded bytes: a value of JSON's types, and its format."""

    format: str
    value: Any


Decode: TypeAlias = Callable[[bytes], Decoded]
"""Raises `Undecodable`."""


class Undecodable(ConfigError):
    """The bytes are not in the format."""


def decode_text(data: bytes) -> Decoded:
    try:
        return Decoded("text", data.decode())
    except UnicodeDecodeError:
        raise Undecodable("not UTF-8") from None


def decode_base64(data: bytes) -> Decoded:
    """Any bytes as base64, for bytes that nothing else decodes."""
    return Decoded("binary", b64encode(data).decode())


def decode_json(data: bytes) -> Decoded:
    try:
        return Decoded("json", msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Undecodable(f"not JSON: {error}") from None


def decode_msgpack(data: bytes) -> Decoded:
    try:
        return Decoded("msgpack", plain(msgspec.msgpack.decode(data)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise Undecodable(f"not MessagePack: {error}") from None


def plain(value: Any) -> Any:
    """The value in JSON's types: keys become text, bytes base64, times ISO-8601."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {_name(key): plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(each) for each in value]
        case bytes() | bytearray() | memoryview():
            return b64encode(bytes(value)).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | UUID():
            return str(value)
        case msgspec.msgpack.Ext():
            return {"type": value.code, "data": plain(value.data)}
        case _:
            return str(value)


def _name(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode(errors="replace")
    return str(plain(key))
