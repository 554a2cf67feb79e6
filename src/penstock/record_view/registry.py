"""Values with a schema id, as Confluent's serializers write them, by a schema registry's REST.

A value is a zero byte, the id in four bytes, then the data: Avro; JSON; or, for Protobuf, the path
to a message in its file and the message. Schemas are asked for once.
"""

import urllib.error
import urllib.parse
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from penstock.errors import ConfigError
from penstock.record_view.avro import avro_decoder
from penstock.record_view.decoded import Decode, Decoded, Undecodable, decode_json
from penstock.record_view.extra import library
from penstock.record_view.protobuf import message_decoder

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
TIMEOUT_S: Final = 10.0


class SchemaReference(msgspec.Struct):
    """A schema that another one imports under a name."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct, rename="camel"):
    """A schema as the registry describes it."""

    schema: str
    schema_type: str = "AVRO"
    references: list[SchemaReference] = []


class RegistryFailed(ConfigError):
    """The registry cannot be reached, or refuses."""


class SchemaRegistry:
    """A client of `url`, which may have `user:password@` in it. Its calls block."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"--registry {url!r} is not http://host:port")
        host = parts.netloc.rpartition("@")[2]
        self._url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            login = f"{_unquoted(parts.username)}:{_unquoted(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._decoders: dict[int, Decode] = {}

    def decode(self, data: bytes) -> Decoded:
        if not has_schema_id(data):
            raise Undecodable("no schema id")
        schema_id = int.from_bytes(data[1:PREFIX_BYTES])
        if schema_id not in self._decoders:
            self._decoders[schema_id] = self._decoder(schema_id)
        return self._decoders[schema_id](data[PREFIX_BYTES:])

    def _decoder(self, schema_id: int) -> Decode:
        found = self._schema(f"/schemas/ids/{schema_id}")
        match found.schema_type:
            case "AVRO":
                named: dict[str, Any] = {}
                for each in self._imported(found):
                    parsed = msgspec.json.decode(each.schema)
                    library("fastavro", "decoding Avro").parse_schema(parsed, named_schemas=named)
                return avro_decoder(msgspec.json.decode(found.schema), named)
            case "JSON":
                return decode_json
            case "PROTOBUF":
                return self._protobuf(schema_id, found)
            case other:
                raise ConfigError(f"schema {schema_id} is {other}, which is not known")

    def _imported(self, schema: RegisteredSchema) -> Iterator[RegisteredSchema]:
        for each in schema.references:
            subject = urllib.parse.quote(each.subject, safe="")
            found = self._schema(f"/subjects/{subject}/versions/{each.version}")
            yield from self._imported(found)
            yield found

    def _protobuf(self, schema_id: int, schema: RegisteredSchema) -> Decode:
        descriptors = library("google.protobuf.descriptor_pb2", "decoding Protobuf")

        def file_of(path: str, name: str) -> Any:
            file = descriptors.FileDescriptorProto()
            file.ParseFromString(b64decode(self._schema(f"{path}?format=serialized").schema))
            file.name = name
            return file

        files = [
            file_of(
                f"/subjects/{urllib.parse.quote(each.subject, safe='')}/versions/{each.version}",
                each.name,
            )
            for each in schema.references
        ]
        files.append(file_of(f"/schemas/ids/{schema_id}", f"schema-{schema_id}.proto"))
        decoders: dict[str, Decode] = {}

        def decode(data: bytes) -> Decoded:
            path, rest = message_path(data)
            name = _message_at(files[-1], path)
            if name not in decoders:
                decoders[name] = message_decoder(files, name)
            return decoders[name](rest)

        return decode

    def _schema(self, path: str) -> RegisteredSchema:
        request = urllib.request.Request(self._url + path, headers=self._headers)  # noqa: S310  http(s)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310  checked above
                return msgspec.json.decode(response.read(), type=RegisteredSchema)
        except urllib.error.HTTPError as error:
            raise RegistryFailed(
                f"registry {self._url}{path}: {error.code} {error.reason}"
            ) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise RegistryFailed(f"registry {self._url} cannot be reached: {reason}") from None
        except msgspec.DecodeError as error:
            raise RegistryFailed(f"registry {self._url}{path}: not a schema: {error}") from None


def has_schema_id(data: bytes) -> bool:
    return len(data) >= PREFIX_BYTES and data[0] == MAGIC


def message_path(data: bytes) -> tuple[list[int], bytes]:
    """The indexes of nested messages, and what follows; a lone zero means the first message."""
    count, at = _varint(data, 0)
    if count == 0:
        return [0], data[at:]
    path = []
    for _ in range(count):
        index, at = _varint(data, at)
        path.append(index)
    return path, data[at:]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise Undecodable("the path to the Protobuf message is broken")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def _message_at(file: Any, path: list[int]) -> str:
    names = [file.package] if file.package else []
    messages = file.message_type
    for index in path:
        if not 0 <= index < len(messages):
            raise Undecodable(f"the schema has no message {path}")
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(names)


def _unquoted(text: str) -> str:
    return urllib.parse.unquote(text)
