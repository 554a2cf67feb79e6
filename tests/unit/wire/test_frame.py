"""Headers of requests and responses, and frames."""

import pytest

from penstock.errors import ErrorCode, ProtocolError
from penstock.wire.apis import APIS, Api
from penstock.wire.client_frame import read_response_header, request_frame, write_request_header
from penstock.wire.codec import decode
from penstock.wire.frame import read_request_header, response_frame
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.negotiation import api_versions_refusal


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@pytest.mark.parametrize("client_id", [None, "", "a client é"])
def test_a_request_header_survives_the_round_trip_at_every_version(
    api: Api, client_id: str | None
) -> None:
    for version in range(api.low, api.high + 1):
        out = bytearray()
        write_request_header(out, api, version, -7, client_id)
        header, at = read_request_header(memoryview(out + b"body"))
        silent = api.name == "ControlledShutdown" and version == 0
        assert (header.api, header.version, header.correlation_id) == (api, version, -7)
        assert header.client_id == (None if silent else client_id)
        assert bytes(out[at:]) == b""


def test_an_error_names_an_unknown_api_key() -> None:
    with pytest.raises(ProtocolError, match="unknown API key 999"):
        read_request_header(bytes.fromhex("03e7 0000 00000001 ffff"))


def test_a_header_truncated_at_any_length_is_rejected() -> None:
    out = bytearray()
    write_request_header(out, APIS[3], 12, 1, "client")
    for size in range(len(out)):
        with pytest.raises(ProtocolError, match="request header: "):
            read_request_header(out[:size])


def test_millions_of_tagged_fields_in_a_header_are_rejected_at_once() -> None:
    """CVE-2026-111115: the count is checked before any field is read."""
    out = bytearray()
    write_request_header(out, APIS[3], 12, 1, "client")
    out[-1:] = b"\x80\xad\xe2\x04" + b"\x01\x00" * 100
    with pytest.raises(ProtocolError, match="impossible count 10000000"):
        read_request_header(out)


def test_unknown_tagged_fields_are_skipped() -> None:
    out = bytearray()
    write_request_header(out, APIS[3], 12, 1, "client")
    out[-1:] = b"\x02" + b"\x05\x03abc" + b"\x81\x01\x00"
    header, at = read_request_header(out)
    assert (header.client_id, at) == ("client", len(out))


def test_a_response_to_api_versions_has_the_oldest_header_at_every_version() -> None:
    """A client reads it before it knows which versions the broker supports."""
    frame, _ = response_frame(APIS[18], 4, 9, ApiVersionsResponse(throttle_time_ms=1))
    assert read_response_header(frame[4:], APIS[18], 4) == (9, 4)
    frame, _ = response_frame(APIS[3], 9, 9, MetadataResponse())
    assert read_response_header(frame[4:], APIS[3], 9) == (9, 5)


def test_a_frame_declares_its_own_size() -> None:
    frame = request_frame(APIS[3], 1, 5, "me", MetadataRequest(topics=None))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, at = read_request_header(frame[4:])
    assert (header.api.name, header.client_id) == ("Metadata", "me")
    assert decode(MetadataRequest, 1, frame[4 + at :]).topics is None


def test_an_unsupported_api_versions_version_is_answered_in_version_0() -> None:
    """KIP-511, on which franz-go and newer Java clients rely."""
    future = request_frame(APIS[18], 3, 1, "c", ApiVersionsRequest(client_software_name="x"))
    future[6:8] = (99).to_bytes(2, "big")
    header, _ = read_request_header(future[4:])
    assert header.version == 99
    frame = api_versions_refusal(header.correlation_id)
    correlation_id, at = read_response_header(frame[4:], APIS[18], 0)
    response = decode(ApiVersionsResponse, 0, frame[4 + at :])
    assert correlation_id == 1
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 5)]
