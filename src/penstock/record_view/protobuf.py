"""Protobuf messages, by descriptors: a file of `protoc --descriptor_set_out`, or a registry."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError
from penstock.record_view.decoded import Decode, Decoded, Undecodable
from penstock.record_view.extra import library


def protobuf_file_decoder(path: Path, message: str | None) -> Decode:
    """Decodes with a descriptor set; `message` may be omitted if its last file has only one."""
    descriptors = library("google.protobuf.descriptor_pb2", "decoding Protobuf")
    found = descriptors.FileDescriptorSet()
    try:
        found.ParseFromString(path.read_bytes())
    except Exception:  # noqa: BLE001  a file is the user's; DecodeError is in the library
        found.Clear()
    if not found.file:
        raise ConfigError(
            f"{path} is not a descriptor set: make it by "
            "`protoc --include_imports --descriptor_set_out=FILE X.proto`"
        )
    try:
        return message_decoder(list(found.file), message)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def message_decoder(files: Sequence[Any], message: str | None) -> Decode:
    """Decodes with FileDescriptorProtos, each after those that it imports."""
    pools = library("google.protobuf.descriptor_pool", "decoding Protobuf")
    factories = library("google.protobuf.message_factory", "decoding Protobuf")
    json_format = library("google.protobuf.json_format", "decoding Protobuf")
    pool = pools.DescriptorPool()
    try:
        for each in files:
            pool.AddSerializedFile(each.SerializeToString())
        name = message or _only_message(files[-1])
        kind = factories.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        known = ", ".join(message_names(files[-1]))
        raise ConfigError(f"no message {message}; there are {known}") from None
    except TypeError as error:
        raise ConfigError(f"the descriptors do not fit together: {error}") from None

    def decode(data: bytes) -> Decoded:
        parsed = kind()
        try:
            parsed.ParseFromString(data)
            fields = json_format.MessageToDict(parsed, preserving_proto_field_name=True)
        except Exception as error:  # noqa: BLE001  any bytes come here
            raise Undecodable(f"not a {name}: {error}") from None
        return Decoded("protobuf", fields)

    return decode


def message_names(file: Any) -> list[str]:
    prefix = f"{file.package}." if file.package else ""
    return [prefix + each.name for each in file.message_type]


def _only_message(file: Any) -> str:
    names = message_names(file)
    if len(names) != 1:
        raise ConfigError(f"name the message: {', '.join(names)}")
    return names[0]
