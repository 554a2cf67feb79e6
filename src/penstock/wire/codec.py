"""The encode and decode functions of every message and version, generated on first use.

Those that a broker needs most are written to `hot` beforehand, and compiled.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias, TypeVar, cast

from penstock.types import Buffer
from penstock.wire import hot
from penstock.wire.apis import first_flexible
from penstock.wire.decoder import DecoderSource
from penstock.wire.encoder import EncoderSource
from penstock.wire.schema import Message, Splice

M = TypeVar("M", bound=Message)
Decoder: TypeAlias = Callable[[Buffer, int], tuple[M, int]]
"""decode(buf, at) -> (message, end position); raises ProtocolError."""
Encoder: TypeAlias = Callable[[M, bytearray], Sequence[Splice]]
"""encode(message, out): appends to `out`; returns the record regions to splice into it."""


def decoder(message: type[M], version: int) -> Decoder[M]:
    return cast("Decoder[M]", _fastest_decoder(message, version))


def encoder(message: type[M], version: int) -> Encoder[M]:
    return cast("Encoder[M]", _fastest_encoder(message, version))


def yielding_decoder(message: type[M], version: int, most_items: int | None = None) -> Decoder[M]:
    """The decoder in Python, for large messages on another thread.

    Compiled code would not let other threads run. A message with more than `most_items` in all of
    its arrays together is refused.
    """
    return cast("Decoder[M]", _decoder(message, version, most_items))


def yielding_encoder(message: type[M], version: int) -> Encoder[M]:
    return cast("Encoder[M]", _encoder(message, version))


def decode(message: type[M], version: int, data: Buffer) -> M:
    """Decode the message at the start of `data`; bytes that a newer peer appended are ignored."""
    return decoder(message, version)(data, 0)[0]


def encode(message: Message, version: int, before: bytes = b"") -> bytes:
    """`before` followed by the encoded message, whose records, if any, must be in memory."""
    out = bytearray(before)
    splices = encoder(type(message), version)(message, out)
    assert not splices, "records in a file cannot be encoded into bytes"
    return bytes(out)


def encode_struct(struct: M, version: int, within: type[Message]) -> M:
    """The struct encoded once, as bytes that may replace it in an array of the message `within`.

    Metadata responses for thousands of partitions are cached per topic in this form.
    """
    out = bytearray()
    _struct_encoder(type(struct), version, within)(struct, out)
    return cast("M", bytes(out))


@cache
def _struct_encoder(struct: type[Message], version: int, within: type[Message]) -> Encoder[Message]:
    flexible = version >= first_flexible(within)
    return cast("Encoder[Message]", EncoderSource(version, flexible=flexible).function(struct))


@cache
def _fastest_decoder(message: type[Message], version: int) -> Decoder[Message]:
    known = hot.DECODERS.get((message, version))
    return _decoder(message, version) if known is None else cast("Decoder[Message]", known)


@cache
def _fastest_encoder(message: type[Message], version: int) -> Encoder[Message]:
    known = hot.ENCODERS.get((message, version))
    return _encoder(message, version) if known is None else cast("Encoder[Message]", known)


@cache
def _decoder(
    message: type[Message], version: int, most_items: int | None = None
) -> Decoder[Message]:
    flexible = version >= first_flexible(message)
    source = DecoderSource(version, flexible=flexible, most_items=most_items)
    return cast("Decoder[Message]", source.function(message))


@cache
def _encoder(message: type[Message], version: int) -> Encoder[Message]:
    flexible = version >= first_flexible(message)
    return cast("Encoder[Message]", EncoderSource(version, flexible=flexible).function(message))
