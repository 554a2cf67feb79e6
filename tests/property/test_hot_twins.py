"""Codecs generated beforehand and compiled behave like those generated at first use.

The same objects and bytes, and the same errors with the same text, for any input.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire import hot
from penstock.wire.codec import encode, yielding_decoder, yielding_encoder
from penstock.wire.encoder import UnencodableError
from penstock.wire.schema import Message, fields
from support.records.wire_values import messages

Codec = tuple[type[Message], int]
BUFFERS: tuple[Callable[[bytes], Buffer], ...] = (bytes, bytearray, memoryview)


def named(codec: Codec) -> str:
    return f"{codec[0].__name__}-{codec[1]}"


def reported(work: Callable[..., Any], *args: Any) -> Any:
    """The result, or the error with its text."""
    try:
        return work(*args)
    except (ProtocolError, UnencodableError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("codec", hot.DECODERS, ids=named)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_any_bytes_are_decoded_alike(codec: Codec, data: st.DataObject) -> None:
    message, version = codec
    raw = bytearray(encode(data.draw(messages(message, version)), version))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        raw[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=5))
    whole = bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    buffer, start = data.draw(st.sampled_from(BUFFERS)), data.draw(st.integers(0, 3))
    given_ = buffer(b"?" * start + whole)
    generic = yielding_decoder(message, version)
    assert reported(hot.DECODERS[codec], given_, start) == reported(generic, given_, start)


def encoded(write: Callable[..., Any], value: Message) -> Any:
    out = bytearray(b"head")
    return reported(write, value, out), out


@pytest.mark.parametrize("codec", hot.ENCODERS, ids=named)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_any_message_is_encoded_alike(codec: Codec, data: st.DataObject) -> None:
    """Also a message with a field of another version, which is an error or ignored."""
    message, version = codec
    value = data.draw(messages(message, version))
    known = {each.name for each in fields(message, version)}
    for name in data.draw(st.sets(st.sampled_from(message.__struct_fields__))):
        other = data.draw(messages(message, data.draw(st.sampled_from(versions_of(message)))))
        if name not in known or data.draw(st.booleans()):
            value = replace(value, **{name: getattr(other, name)})
    generic = yielding_encoder(message, version)
    assert encoded(hot.ENCODERS[codec], value) == encoded(generic, value)


def versions_of(message: type[Message]) -> list[int]:
    return [version for each, version in hot.ENCODERS if each is message]
