"""`partition.metadata` and `meta.properties`: small files that identify a log and its broker."""

import pytest

from penstock.log.corrupt import CorruptFile
from penstock.log.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.log.partition_metadata import (
    decode_partition_metadata,
    encode_partition_metadata,
)
from penstock.types import NO_UUID, Uuid, parse_uuid, uuid_text

TOPIC_ID = Uuid(bytes(range(0xF0, 0x100)))
SPELLED = "8PHy8_T19vf4-fr7_P3-_w"


def test_a_topic_id_is_spelled_in_base64url_without_padding() -> None:
    assert uuid_text(TOPIC_ID) == SPELLED
    assert parse_uuid(SPELLED) == TOPIC_ID


@pytest.mark.parametrize("text", ["", "AAAA", SPELLED + "AA", SPELLED[:-1] + "!", "é" * 22])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_uuid(text)


def test_partition_metadata_is_a_version_and_a_topic_id() -> None:
    written = encode_partition_metadata(TOPIC_ID)
    assert written == f"version: 0\ntopic_id: {SPELLED}".encode()
    assert decode_partition_metadata(written) == TOPIC_ID
    assert decode_partition_metadata(written + b"\n") == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0\n",
        f"version: 1\ntopic_id: {SPELLED}".encode(),
        f"version: 0\ntopic_id: {uuid_text(NO_UUID)}".encode(),
        f"version: 0\ntopic_id: {SPELLED[:-2]}".encode(),
        b"version: 0\ntopic_id: \xff\xff",
    ],
)
def test_partition_metadata_without_a_topic_id_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_partition_metadata(data)


def test_meta_properties_are_written_in_version_0() -> None:
    identity = MetaProperties(3, "c0ffee-cluster-id-abcd", "a-directory")
    written = encode_meta_properties(identity)
    assert written.splitlines() == [
        b"version=0",
        b"broker.id=3",
        b"cluster.id=c0ffee-cluster-id-abcd",
        b"directory.id=a-directory",
    ]
    assert decode_meta_properties(written) == identity


def test_meta_properties_of_a_kraft_node_are_read() -> None:
    text = (
        b"#\n#Sat Nov 14 10:00:00 UTC 2026\n"
        b"cluster.id=q1Sh\\=9\nversion=1\ndirectory.id=Zz9\nnode.id=7\n"
    )
    assert decode_meta_properties(text) == MetaProperties(7, "q1Sh=9", "Zz9")


def test_version_0_may_lack_everything_else() -> None:
    assert decode_meta_properties(b"version=0\n") == MetaProperties(None, None)
    assert encode_meta_properties(MetaProperties(None, "c")) == b"version=0\ncluster.id=c\n"


@pytest.mark.parametrize(
    "data",
    [b"", b"broker.id=1\n", b"version=2\n", b"version=0\nbroker.id=x\n", b"version=1\nnode.id=1\n"],
)
def test_meta_properties_without_an_identity_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"meta\.properties"):
        decode_meta_properties(data)
