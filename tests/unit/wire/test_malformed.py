"""Malformed messages end in a ProtocolError that says what is wrong, and where."""

import pytest

from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.codec import decoder, encode, yielding_decoder
from penstock.wire.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from penstock.wire.messages.fetch import FetchRequest, ReplicaState
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.wire.schema import Message

MAX_STRING = 32767
"""Bytes of the longest string."""


def refusal(message: type[Message], version: int, data: Buffer) -> str:
    with pytest.raises(ProtocolError) as refused:
        decoder(message, version)(bytes(data), 0)
    return str(refused.value)


def test_the_error_names_message_version_field_and_byte() -> None:
    raw = bytearray(encode(MetadataRequest(topics=[MetadataRequestTopic(name="abc")]), 1))
    raw[6] = 0xFF
    assert refusal(MetadataRequest, 1, raw) == (
        "MetadataRequest v1, topics[].name: not UTF-8 (invalid start byte) at byte 9 of 9"
    )
    assert refusal(MetadataRequest, 1, raw[:7]) == (
        "MetadataRequest v1, topics[].name: impossible length 3 at byte 6 of 7"
    )


@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1, -2, -(2**31)])
def test_an_impossible_count_is_rejected_before_anything_is_allocated(count: int) -> None:
    """CVE-2026-111108: a count times the smallest element must fit into what remains."""
    raw = count.to_bytes(4, "big", signed=True) + b"\0\1"
    assert f"topics: impossible count {count} at byte 4" in refusal(MetadataRequest, 1, raw)


def test_an_impossible_compact_count_is_rejected() -> None:
    assert "topics: impossible count 4294967294" in refusal(
        MetadataRequest, 9, b"\xff\xff\xff\xff\x0f" + bytes(20)
    )


@pytest.mark.parametrize("version", [9, 12])
def test_a_string_longer_than_kafkas_longest_is_rejected(version: int) -> None:
    """A longer name would not fit into the records and older responses that carry it."""

    def named(size: int) -> bytes:
        return encode(MetadataRequest(topics=[MetadataRequestTopic(name="é" * size)]), version)

    longest = MAX_STRING // 2
    found, _ = decoder(MetadataRequest, version)(named(longest), 0)
    assert [each.name for each in found.topics or ()] == ["é" * longest]
    assert "topics[].name: impossible length 32768" in refusal(
        MetadataRequest, version, named(longest + 1)
    )
    with pytest.raises(ProtocolError, match="impossible length 32768"):
        yielding_decoder(MetadataRequest, version)(named(longest + 1), 0)
    sent = SaslAuthenticateRequest(bytes(MAX_STRING + 1))  # bytes may be longer
    assert decoder(SaslAuthenticateRequest, 2)(encode(sent, 2), 0)[0] == sent


def test_an_endless_varint_is_rejected() -> None:
    assert "a varint longer than 5 bytes" in refusal(MetadataRequest, 9, b"\xff" * 40)


def test_null_in_a_field_that_is_not_nullable_is_rejected() -> None:
    assert "topic_data: impossible count -1" in refusal(
        ProduceRequest, 9, b"\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    )
    assert "topics[].name: impossible length -1" in refusal(MetadataRequest, 1, b"\0\0\0\1\xff\xff")


def test_a_tagged_field_with_a_wrong_size_is_rejected() -> None:
    raw = bytearray(encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 15))
    assert raw[-16:-13] == b"\x01\x01\x0d"
    raw[-14] -= 1
    assert "tagged fields: contents do not match the declared size" in refusal(
        FetchRequest, 15, raw
    )
    raw[-14] = 100
    assert "tagged fields: impossible size 100" in refusal(FetchRequest, 15, raw)


def test_records_are_a_view_of_the_frame_not_a_copy() -> None:
    part = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part])])
    frame = bytearray(encode(request, 9))
    decoded, _ = decoder(ProduceRequest, 9)(memoryview(frame), 0)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


@pytest.mark.parametrize("version", [1, 2])
def test_an_explanation_is_cut_to_the_longest_string(version: int) -> None:
    """An error may quote a name of the request, which has the greatest length already."""
    reported = AlterConfigsResourceResponse(40, "é" * 32_767, 2, "t")
    raw = encode(AlterConfigsResponse(responses=[reported]), version)
    found, _ = decoder(AlterConfigsResponse, version)(raw, 0)
    (response,) = found.responses
    assert response.error_message == "é" * 8191
    assert (response.error_code, response.resource_name) == (40, "t")
