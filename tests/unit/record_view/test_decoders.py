"""Decoders of values, format detection, and a fake schema registry."""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from uuid import UUID

import fastavro
import msgspec
import pytest
from google.protobuf.descriptor_pb2 import (
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.record_view import extra
from penstock.record_view.avro import avro_decoder, avro_file_decoder
from penstock.record_view.decoded import Decoded, Undecodable, decode_json, decode_msgpack, plain
from penstock.record_view.detect import detected, detecting
from penstock.record_view.protobuf import protobuf_file_decoder
from penstock.record_view.registry import RegistryFailed, SchemaNotFound, SchemaRegistry

USER: dict[str, Any] = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "born", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
ANN = {"name": "Ann", "born": datetime(2000, 1, 2, tzinfo=UTC)}
ANN_SHOWN = {"name": "Ann", "born": "2000-01-02T00:00:00+00:00"}


def avro_bytes() -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(USER), ANN)
    return out.getvalue()


def proto_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for name in ("Order", "Refund"):
        message = file.message_type.add(name=name)
        message.field.add(name="order_id", number=1, type=FieldDescriptorProto.TYPE_STRING, label=1)
    return file


ORDER = b"\x0a\x02o7"
"""shop.Order with order_id "o7"."""


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    path = tmp_path / "shop.desc"
    path.write_bytes(FileDescriptorSet(file=[proto_file()]).SerializeToString())
    return path


def test_avro_is_decoded_by_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "user.avsc"
    path.write_text(json.dumps(USER))
    decode = avro_file_decoder(path)
    assert decode(avro_bytes()) == Decoded("avro", ANN_SHOWN)
    for data in (b"", b"\xff", avro_bytes() + b"x"):
        with pytest.raises(Undecodable, match="not Avro of this schema"):
            decode(data)


@pytest.mark.parametrize("text", [b"{", b'{"type": "nonsense"}', b'{"type": "\xff"}'])
def test_an_error_names_a_wrong_schema(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "user.avsc"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=r"user\.avsc: not an Avro schema"):
        avro_file_decoder(path)


def test_protobuf_is_decoded_by_descriptors(descriptors: Path) -> None:
    decode = protobuf_file_decoder(descriptors, "shop.Order")
    assert decode(ORDER) == Decoded("protobuf", {"order_id": "o7"})
    with pytest.raises(Undecodable, match=r"not a shop\.Order"):
        decode(b"\x0a\xff")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (None, "name the message: shop.Order, shop.Refund"),
        ("shop.Other", "no message shop.Other; there are shop.Order, shop.Refund"),
    ],
)
def test_the_message_type_must_be_named(
    descriptors: Path, message: str | None, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        protobuf_file_decoder(descriptors, message)
    assert reason in str(caught.value)


def test_a_proto_file_is_refused_as_a_descriptor_set(tmp_path: Path) -> None:
    path = tmp_path / "shop.proto"
    path.write_text('syntax = "proto3";')
    with pytest.raises(ConfigError, match="protoc --include_imports"):
        protobuf_file_decoder(path, None)


def test_formats_are_detected() -> None:
    container = BytesIO()
    fastavro.writer(container, fastavro.parse_schema(USER), [ANN])
    packed = msgspec.msgpack.encode({"a": [1, b"\xff"], "t": msgspec.msgpack.Ext(5, b"x")})
    shown = {"a": [1, "/w=="], "t": {"type": 5, "data": "eA=="}}
    cases = {
        b'{"a": 1}': Decoded("json", {"a": 1}),
        b"[1": Decoded("text", "[1"),
        b"17": Decoded("text", "17"),
        "größe\n".encode(): Decoded("text", "größe\n"),
        packed: Decoded("msgpack", shown),
        container.getvalue(): Decoded("avro", ANN_SHOWN),
        b"\x00\x01": Decoded("binary", "AAE="),
        b"\xff\xfe": Decoded("binary", "//4="),
    }
    for data, expected in cases.items():
        assert detected(data) == expected


def test_a_given_schema_is_tried_first() -> None:
    decode = detecting(known=[avro_decoder(USER)])
    assert decode(avro_bytes()).format == "avro"
    assert decode(b'{"a": 1}').format == "json"


@given(st.binary(max_size=40))
def test_any_bytes_are_shown(data: bytes) -> None:
    assert msgspec.json.encode(detected(data).value)


@given(st.binary(max_size=40))
def test_bytes_in_another_format_are_undecodable(data: bytes) -> None:
    for decode in (decode_json, decode_msgpack, avro_decoder(USER)):
        try:
            decode(data)
        except Undecodable:
            continue


def test_values_have_json_types() -> None:
    identity = UUID(int=1)
    assert plain({b"k": Decimal("1.5"), 2: identity, "s": {1}}) == {
        "k": "1.5",
        "2": str(identity),
        "s": [1],
    }


class Registry(BaseHTTPRequestHandler):
    """Confluent's REST API, as far as readers use it."""

    pages: ClassVar[dict[str, dict[str, Any]]] = {
        "/schemas/ids/1": {"schema": json.dumps(USER)},
        "/schemas/ids/2": {"schema": "{}", "schemaType": "JSON"},
        "/schemas/ids/3": {"schema": "syntax ...", "schemaType": "PROTOBUF"},
        "/schemas/ids/3?format=serialized": {
            "schema": b64encode(proto_file().SerializeToString()).decode(),
            "schemaType": "PROTOBUF",
        },
        "/schemas/ids/4": {
            "schema": json.dumps({"type": "array", "items": "User"}),
            "references": [{"name": "User", "subject": "user-value", "version": 1}],
        },
        "/subjects/user-value/versions/1": {"schema": json.dumps(USER)},
        "/schemas/ids/5": {"schema": "{}", "schemaType": "THRIFT"},
        "/schemas/ids/13": {
            "schema": '"User"',
            "references": [{"name": "User", "subject": "broken", "version": 1}],
        },
        "/subjects/broken/versions/1": {
            "schema": '{"type": "record", "name": "User", "fields": 5}'
        },
    }
    broken: ClassVar[dict[str, bytes]] = {
        "/schemas/ids/8": b'{"schema": "\xff"}',
        "/schemas/ids/10": b'{"schema": "{"}',
        "/schemas/ids/11": b'{"schema": "syntax ...", "schemaType": "PROTOBUF"}',
        "/schemas/ids/11?format=serialized": b'{"schema": "A", "schemaType": "PROTOBUF"}',
    }
    refusals: ClassVar[dict[str, bytes]] = {
        "/schemas/ids/6": b"<html>default backend - 404</html>",
        "/schemas/ids/7": b'{"error_code": 404, "message": "HTTP 404 Not Found"}',
        "/schemas/ids/12": b'{"message": "\xff"}',
    }
    unknown: ClassVar[bytes] = b'{"error_code": 40403, "message": "Schema not found"}'
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        type(self).asked.append(f"{self.path} {self.headers.get('Authorization', '')}".strip())
        found = self.pages.get(self.path)
        good = json.dumps(found).encode() if found else self.broken.get(self.path)
        body = good or self.refusals.get(self.path, self.unknown)
        self.send_response(200 if good else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Discard the access log."""


@pytest.fixture(scope="module")
def registry_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def framed(schema: int, data: bytes) -> bytes:
    return b"\0" + schema.to_bytes(4) + data


def test_values_are_decoded_by_the_registrys_schemas(registry_address: str) -> None:
    registry = SchemaRegistry(f"http://user:pass%21@{registry_address}/")
    Registry.asked.clear()
    cases = {
        framed(1, avro_bytes()): ANN_SHOWN,
        framed(2, b'{"a": 1}'): {"a": 1},
        framed(3, b"\0" + ORDER): {"order_id": "o7"},
        framed(3, b"\x02\x02" + ORDER): {"order_id": "o7"},
        framed(4, b"\x02" + avro_bytes() + b"\0"): [ANN_SHOWN],
    }
    for data, expected in cases.items():
        assert registry.decode(data).value == expected
        assert detecting(registry)(data).value == expected
    login = f"Basic {b64encode(b'user:pass!').decode()}"
    assert Registry.asked.count(f"/schemas/ids/1 {login}") == 1, "a schema is asked for once"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (framed(9, b""), "404 Schema not found"),
        (framed(5, b""), "schema 5 is THRIFT"),
        (framed(8, b""), "not a schema"),
        (framed(10, b""), "schema 10 cannot be read"),
        (framed(11, b""), "schema 11 cannot be read"),
        (framed(12, b""), "404 Not Found"),
        (framed(13, b""), "schema 13 cannot be read"),
        (framed(3, b"\x02\x08"), "no message"),
        (framed(3, b"\xff\xff\xff\xff\xff\xff"), "is broken"),
        (b"plain", "no schema id"),
    ],
)
def test_an_unknown_schema_is_refused(registry_address: str, data: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        SchemaRegistry(registry_address).decode(data)


def test_only_the_registry_itself_can_say_that_a_schema_does_not_exist(
    registry_address: str,
) -> None:
    registry = SchemaRegistry(registry_address)
    with pytest.raises(SchemaNotFound, match="404 Schema not found"):
        registry.by_id(9)
    for of_a_proxy in (6, 7):
        with pytest.raises(RegistryFailed, match="404") as caught:
            registry.by_id(of_a_proxy)
        assert not isinstance(caught.value, SchemaNotFound)


def test_an_error_names_a_missing_registry() -> None:
    with pytest.raises(RegistryFailed, match=r"registry http://127\.0\.0\.1:1 cannot"):
        SchemaRegistry("127.0.0.1:1").decode(framed(1, b""))
    with pytest.raises(ConfigError, match="is not http://host:port"):
        SchemaRegistry("ftp://x")


def test_a_missing_library_is_refused_with_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        extra.library("no_such_library.part", "--filter")
    assert str(caught.value) == f"--filter needs no_such_library: {install('cli')}"


NOTHING: dict[str, Any] = {
    "type": "record",
    "name": "Nothing",
    "fields": [{"name": "a", "type": "null"}],
}
CHAIN: dict[str, Any] = {
    "type": "record",
    "name": "Chain",
    "fields": [{"name": "next", "type": ["null", "Chain"]}],
}


@pytest.mark.parametrize("items", ["null", NOTHING, {"type": "fixed", "name": "F", "size": 0}])
def test_an_array_of_empty_elements_is_refused(items: Any) -> None:
    with pytest.raises(ConfigError, match="take no bytes"):
        avro_decoder({"type": "array", "items": items})
    many = {"type": "array", "items": "Nothing"}
    fields = [{"name": "a", "type": NOTHING}, {"name": "b", "type": many}]
    with pytest.raises(ConfigError, match="take no bytes"):
        avro_decoder({"type": "record", "name": "R", "fields": fields})


def test_a_value_nested_too_deep_is_refused() -> None:
    decode = avro_decoder(CHAIN)
    assert decode(b"\x02\x00").value == {"next": {"next": None}}
    with pytest.raises(Undecodable):
        decode(b"\x02" * 200_000 + b"\x00")


def avro_file(schema: Any, block: bytes, rows: bytes = b"\x02", codec: str = "null") -> bytes:
    """A file of one block; `rows` is zigzag-encoded, so that 2 means one row."""
    out, parsed = BytesIO(), fastavro.parse_schema(schema)
    fastavro.writer(out, parsed, [], codec=codec, sync_marker=b"s" * 16)
    size = BytesIO()
    fastavro.schemaless_writer(size, "long", len(block))
    return out.getvalue() + rows + size.getvalue() + block + b"s" * 16


def test_a_hostile_avro_file_is_shown_as_bytes() -> None:
    assert detected(avro_file("int", b"\x02")) == Decoded("avro", 1)
    billion = b"\x80\x80\x80\x80\x08"
    small = {"type": "array", "items": "null"}
    for hostile in (
        avro_file(small, b"\x80\x80\x04\x00"),
        avro_file("null", b"", rows=b"\x80\x80\x04"),
        avro_file("int", b"\x02" * 20_000, rows=billion),
        avro_file(CHAIN, b"\x02" * 200_000 + b"\x00"),
        avro_file("bytes", zlib.compress(bytes(20 << 20))[2:-4], codec="deflate"),
    ):
        assert detected(hostile).format == "binary"
