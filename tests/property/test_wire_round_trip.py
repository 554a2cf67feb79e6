"""Every message at every version survives encoding and decoding unchanged."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.errors import ProtocolError
from penstock.wire.apis import APIS, Api
from penstock.wire.codec import decoder, encode, encode_struct, encoder
from penstock.wire.encoder import UnencodableError
from penstock.wire.messages.fetch import FetchResponse, PartitionData
from penstock.wire.schema import Array, Message, fields
from support.records.wire_values import ALL_VERSIONS, messages

EVERY_MESSAGE = pytest.mark.parametrize(
    ("message", "versions"), ALL_VERSIONS, ids=[m.__name__ for m, _ in ALL_VERSIONS]
)


@EVERY_MESSAGE
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_a_message_survives_the_round_trip(
    message: type[Message], versions: range, data: st.DataObject
) -> None:
    for version in versions:
        value = data.draw(messages(message, version))
        raw = encode(value, version)
        assert decoder(message, version)(raw, 0) == (value, len(raw))
        assert decoder(message, version)(memoryview(b"??" + raw), 2) == (value, len(raw) + 2)


@EVERY_MESSAGE
def test_a_message_of_defaults_survives_the_round_trip(
    message: type[Message], versions: range
) -> None:
    for version in versions:
        raw = encode(message(), version)
        assert decoder(message, version)(raw, 0) == (message(), len(raw))


@EVERY_MESSAGE
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_damaged_bytes_are_rejected_or_decoded_but_never_crash(
    message: type[Message], versions: range, data: st.DataObject
) -> None:
    """Truncation is always noticed; a changed byte may give another valid message."""
    version = data.draw(st.sampled_from(versions))
    raw = bytearray(encode(data.draw(messages(message, version)), version))
    decode = decoder(message, version)
    if raw:
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(ProtocolError, match=rf"{message.__name__} v{version}, .* at byte"):
            decode(raw[:cut], 0)
        raw[cut] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ProtocolError):
        decode(raw, 0)


class Region:
    """Records that are not in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


@settings(max_examples=settings().max_examples * 2)
@given(data=st.data())
def test_records_outside_of_memory_are_spliced_at_their_positions(data: st.DataObject) -> None:
    version = data.draw(st.integers(APIS[1].low, APIS[1].high))
    value = data.draw(messages(FetchResponse, version))
    expected = encode(value, version)
    out = bytearray(b"head")
    splices = encoder(FetchResponse, version)(_with_regions(value), out)
    for position, region in reversed(splices):
        assert isinstance(region, Region)
        out[position:position] = region.data
    assert out == b"head" + expected


def _with_regions(response: FetchResponse) -> FetchResponse:
    topics = [
        replace(topic, partitions=[_with_region(part) for part in topic.partitions])
        for topic in response.responses
    ]
    return replace(response, responses=topics)


def _with_region(part: PartitionData) -> PartitionData:
    return replace(part, records=Region(part.records)) if isinstance(part.records, bytes) else part


def _structs(message: type[Message], version: int) -> set[type[Message]]:
    """The message and every struct that it can hold at `version`."""
    found = {message}
    for field in fields(message, version):
        kind = field.kind.item if isinstance(field.kind, Array) else field.kind
        if isinstance(kind, type):
            found |= _structs(kind, version)
    return found


@pytest.mark.parametrize("api", APIS.values(), ids=[each.name for each in APIS.values()])
def test_an_error_code_is_encoded_or_raises_but_is_never_omitted(api: Api) -> None:
    """A version without the field would return "nothing, and no error" to the peer."""
    for version in range(api.low, api.high + 1):
        for struct in _structs(api.response, version):
            for name in struct.__struct_fields__:
                if not name.endswith("error_code"):
                    continue
                failed = struct(**{name: 15})
                if any(field.name == name for field in fields(struct, version)):
                    assert encode_struct(failed, version, api.response) != encode_struct(
                        struct(), version, api.response
                    )
                else:
                    with pytest.raises(UnencodableError, match=f"{name} is not in version"):
                        encode_struct(failed, version, api.response)
