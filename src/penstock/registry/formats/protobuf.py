"""Protobuf schemas, compiled by protoc, which `grpcio-tools` includes as a library."""

import re
import tempfile
import threading
from base64 import b64decode, b64encode
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.registry.formats.parsed import BrokenSchema, Imported, ParsedSchema
from penstock.registry.formats.protobuf_rules import cannot_read
from penstock.registry.formats.protobuf_text import CannotPrint, file_of, protobuf_text

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_NAME: Final = re.compile(r"[A-Za-z0-9_\-.]+(/[A-Za-z0-9_\-.]+)*")
_OWN: Final = "schema.proto"
_one_at_a_time = threading.Lock()
"""protoc's library keeps its state in globals."""


class ProtobufSchema:
    """A compiled file, from text or from a base64 descriptor."""

    def __init__(self, text: str, imported: Imported) -> None:
        texts = [(name, _as_text(each)) for name, each in imported]
        given = _as_text(text)
        self._file, self._imported = _compiled(given, texts)
        self.canonical = self._printed(given, texts)

    @cached_property
    def _serialized(self) -> str:
        return b64encode(self._file.SerializeToString(deterministic=True)).decode()

    def normalized(self) -> str:
        return self.canonical

    def formatted(self, name: str) -> str | None:
        if name == "serialized":
            return self._serialized
        return self.canonical if name in {"", "default"} else None

    def cannot_read(self, writer: ParsedSchema) -> list[str]:
        assert isinstance(writer, ProtobufSchema)
        return list(cannot_read(self._files, writer._files))  # noqa: SLF001  its own class

    @property
    def _files(self) -> list[Any]:
        """Its own file, then those that it imports."""
        return [self._file, *self._imported]

    def _printed(self, given: str, imported: Imported) -> str:
        """The text in a uniform style if it compiles to the same descriptor; else as given."""
        for absolute in (False, True):
            try:
                text = protobuf_text(self._file, absolute=absolute)
                if _compiled(text, imported)[0] == self._file:
                    return text
            except (CannotPrint, BrokenSchema):
                continue
        return given


def parse_protobuf(text: str, imported: Imported) -> ParsedSchema:
    return ProtobufSchema(text, imported)


def _as_text(given: str) -> str:
    packed = given.strip()
    if not _BASE64.fullmatch(packed):
        return given
    try:
        return protobuf_text(file_of(b64decode(packed, validate=True)), absolute=True)
    except (ValueError, DecodeError, CannotPrint) as error:
        raise BrokenSchema(f"the descriptor in base64 cannot be read: {error}") from None


def _compiled(text: str, imported: Imported) -> tuple[Any, list[Any]]:
    """The file's descriptor without name and source positions, and those of all imports."""
    import grpc_tools
    from grpc_tools import _protoc_compiler, protoc

    known = str(Path(grpc_tools.__file__).with_name("_proto"))
    with tempfile.TemporaryDirectory(prefix="penstock-proto-") as directory, _one_at_a_time:
        for name, each in ((_OWN, text), *imported):
            if not _NAME.fullmatch(name) or ".." in name.split("/"):
                raise BrokenSchema(f"the reference's name {name!r} is not that of a .proto file")
            path = Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each)
        try:
            # protoc's own main would print its errors; this call returns them for the client.
            _protoc_compiler.get_protos(_OWN.encode(), [directory.encode(), known.encode()])
        except _protoc_compiler.ProtocErrors as errors:
            raise BrokenSchema("; ".join(_message(each) for each in errors.args[0])) from None
        made = Path(directory, "compiled")
        folders = [f"-I{directory}", f"-I{known}"]
        output = ["--include_imports", f"--descriptor_set_out={made}"]
        if protoc.main(["protoc", *folders, *output, _OWN]):
            raise BrokenSchema("protoc refuses it")
        return _own_file(made.read_bytes())


def _own_file(data: bytes) -> tuple[Any, list[Any]]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files = FileDescriptorSet()
    files.ParseFromString(data)
    *imported, file = files.file  # dependencies come first, so the own file is last
    file.ClearField("name")
    file.ClearField("source_code_info")
    return file, imported


def _message(error: Any) -> str:
    text = error.message
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return f"line {error.line + 1}: {said}"
