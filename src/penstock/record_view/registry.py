"""Decodes values with a schema id, as Confluent's serializers write them, by a schema registry.

A value is a zero byte, the id in four bytes, then the data: Avro; JSON; or, for Protobuf, the path
to a message in its file and the message. Each schema is requested once.
"""

import urllib.error
import urllib.parse
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, Final, TypeVar

import msgspec

from penstock.errors import ConfigError
from penstock.record_view.avro import avro_decoder
from penstock.record_view.decoded import Decode, Decoded, Undecodable, decode_json
from penstock.record_view.extra import library
from penstock.record_view.protobuf import message_decoder

T = TypeVar("T")
MAGIC: Final = 0
PREFIX_BYTES: Final = 5
TIMEOUT_S: Final = 10.0
JSON: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND: Final = {40401, 40402, 40403}
"""Error codes for a missing subject, version and schema. A proxy without its registry also answers
404, but without these codes.
"""


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
    id: int = 0
    """Set for a version; missing in a schema requested by its id."""


class _Registered(msgspec.Struct):
    id: int


class _Level(msgspec.Struct, rename="camel"):
    compatibility_level: str


class _Verdict(msgspec.Struct):
    is_compatible: bool
    messages: list[str] = []


class _Refusal(msgspec.Struct):
    message: str
    error_code: int = 0


class RegistryFailed(ConfigError):
    """The registry cannot be reached, or refuses the request."""


class SchemaNotFound(RegistryFailed):
    """The registry has no such schema, version or subject."""


class SchemaRegistry:
    """A client of `url`, which may have `user:password@` in it. Its calls block."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"--registry {url!r} is not http://host:port")
        host = parts.netloc.rpartition("@")[2]
        self._url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        self._headers = {"Accept": JSON, "Content-Type": JSON}
        if parts.username is not None:
            login = f"{_unquoted(parts.username)}:{_unquoted(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._decoders: dict[int, Decode] = {}

    def decode(self, data: bytes) -> Decoded:
        if not has_schema_id(data):
            raise Undecodable("no schema id")
        schema_id = int.from_bytes(data[1:PREFIX_BYTES])
        if schema_id not in self._decoders:
            try:
                self._decoders[schema_id] = self._decoder(schema_id)
            except ConfigError:
                raise
            except Exception as error:  # noqa: BLE001  a schema is anybody's; libraries raise much
                raise RegistryFailed(
                    f"registry {self._url}: schema {schema_id} cannot be read: {error}"
                ) from None
        return self._decoders[schema_id](data[PREFIX_BYTES:])

    def _decoder(self, schema_id: int) -> Decode:
        found = self._schema(f"/schemas/ids/{schema_id}")
        match found.schema_type:
            case "AVRO":
                named: dict[str, Any] = {}
                for each in self.imported(found):
                    parsed = msgspec.json.decode(each.schema)
                    library("fastavro", "decoding Avro").parse_schema(parsed, named_schemas=named)
                return avro_decoder(msgspec.json.decode(found.schema), named)
            case "JSON":
                return decode_json
            case "PROTOBUF":
                return self._protobuf(schema_id, found)
            case other:
                raise ConfigError(f"schema {schema_id} is {other}, which is not known")

    def imported(self, schema: RegisteredSchema) -> Iterator[RegisteredSchema]:
        """The schemas that a schema refers to, each before those that need it."""
        for each in schema.references:
            found = self._schema(_version_path(each.subject, each.version))
            yield from self.imported(found)
            yield found

    def files(self, schema_id: int, schema: RegisteredSchema) -> list[Any]:
        """A Protobuf schema as FileDescriptorProtos, each after those that it imports."""
        descriptors = library("google.protobuf.descriptor_pb2", "decoding Protobuf")
        found: dict[str, Any] = {}

        def add(path: str, name: str, schema: RegisteredSchema) -> None:
            for each in schema.references:
                if each.name not in found:
                    inner = _version_path(each.subject, each.version)
                    add(inner, each.name, self._schema(inner))
            file = descriptors.FileDescriptorProto()
            file.ParseFromString(b64decode(self._schema(f"{path}?format=serialized").schema))
            file.name = name
            found[name] = file

        add(f"/schemas/ids/{schema_id}", f"schema-{schema_id}.proto", schema)
        return list(found.values())

    def _protobuf(self, schema_id: int, schema: RegisteredSchema) -> Decode:
        files = self.files(schema_id, schema)
        decoders: dict[str, Decode] = {}

        def decode(data: bytes) -> Decoded:
            path, rest = message_path(data)
            name = message_at(files[-1], path)
            if name not in decoders:
                decoders[name] = message_decoder(files, name)
            return decoders[name](rest)

        return decode

    def by_id(self, schema_id: int) -> RegisteredSchema:
        return self._schema(f"/schemas/ids/{schema_id}")

    def versions(self, subject: str) -> list[RegisteredSchema]:
        """The versions of a subject, newest first."""
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        numbers = sorted(self._get(path, list[int]), reverse=True)
        return [self._schema(_version_path(subject, each)) for each in numbers]

    def subjects(self) -> list[str]:
        return sorted(self._get("/subjects", list[str]))

    def numbers(self, subject: str) -> list[int]:
        """The version numbers of a subject, oldest first."""
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        return sorted(self._get(path, list[int]))

    def version(self, subject: str, number: int) -> RegisteredSchema:
        return self._schema(_version_path(subject, number))

    def level(self, subject: str) -> str:
        """The compatibility level that applies to a subject."""
        quoted = urllib.parse.quote(subject, safe="")
        return self._get(f"/config/{quoted}?defaultToGlobal=true", _Level).compatibility_level

    def incompatibilities(self, subject: str, schema: str, schema_type: str) -> list[str]:
        """Why a schema cannot be the next version; empty if it can."""
        quoted = urllib.parse.quote(subject, safe="")
        # Not only with the latest version: the subject's level decides, and there may be no
        # version.
        path = f"/compatibility/subjects/{quoted}/versions?verbose=true"
        body = msgspec.json.encode({"schema": schema, "schemaType": schema_type})
        found = self._get(path, _Verdict, body)
        return [] if found.is_compatible else found.messages or ["it is not compatible"]

    def latest(self, subject: str) -> RegisteredSchema:
        return self._schema(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")

    def register(self, subject: str, schema: str, schema_type: str) -> int:
        """The id of a schema; registers it as a version of the subject if it is not one yet."""
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        body = msgspec.json.encode({"schema": schema, "schemaType": schema_type})
        return self._get(path, _Registered, body).id

    def _schema(self, path: str) -> RegisteredSchema:
        return self._get(path, RegisteredSchema)

    def _get(self, path: str, kind: type[T], body: bytes | None = None) -> T:
        request = urllib.request.Request(self._url + path, body, self._headers)  # noqa: S310  http(s)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310  checked above
                return msgspec.json.decode(response.read(), type=kind)
        except urllib.error.HTTPError as error:
            said = _said(error)
            about = f"registry {self._url}{path}: {error.code} {said.message}"
            missing = said.error_code in _NOT_FOUND
            raise (SchemaNotFound if missing else RegistryFailed)(about) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise RegistryFailed(f"registry {self._url} cannot be reached: {reason}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RegistryFailed(f"registry {self._url}{path}: not a schema: {error}") from None


def _said(error: urllib.error.HTTPError) -> _Refusal:
    """The registry's own error, if the response has one."""
    try:
        return msgspec.json.decode(error.read(), type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError, HTTPException):
        return _Refusal(error.reason)


def _version_path(subject: str, version: int) -> str:
    return f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}"


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
    """A zigzag varint, and the position after it."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise Undecodable("the path to the Protobuf message is broken")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def message_at(file: Any, path: list[int]) -> str:
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
