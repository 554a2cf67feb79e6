"""The options for decoding keys and values, and the decoders that they select."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.errors import ConfigError
from penstock.record_view.decoded import (
    Decode,
    decode_json,
    decode_msgpack,
    decode_text,
)

if TYPE_CHECKING:
    from penstock.record_view.registry import SchemaRegistry

FORMATS = ("auto", "json", "avro", "protobuf", "msgpack", "text", "none")


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoders of keys and values; None: the raw bytes are shown."""

    key: Decode | None
    value: Decode | None


def decoding_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which passes their values to `decoding_of`."""
    options = (
        click.option(
            "-d",
            "--decode",
            "decode",
            type=click.Choice(FORMATS),
            default="none",
            show_default=True,
            help="Format of values; auto detects it. Internal topics are always decoded.",
        ),
        click.option(
            "--decode-key",
            type=click.Choice(FORMATS),
            default="none",
            show_default=True,
            help="Format of keys.",
        ),
        click.option(
            "--schema",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Avro schema, or Protobuf descriptors of `protoc --descriptor_set_out`.",
        ),
        click.option("--message", metavar="NAME", help="The Protobuf message in --schema."),
        click.option(
            "--registry",
            metavar="URL",
            envvar="PENSTOCK_REGISTRY",
            help="Schema registry, for values that begin with a schema id. [$PENSTOCK_REGISTRY]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def decoding_of(
    *,
    decode: str,
    decode_key: str,
    schema: Path | None,
    message: str | None,
    registry: str | None,
) -> Decoding:
    """The decoders for the options; `ConfigError` if a schema or library is missing or wrong."""
    known = None if registry is None else _registry(registry)

    def decoder(name: str) -> Decode | None:
        return _decoder(name, schema, message, known)

    return Decoding(decoder(decode_key), decoder(decode))


def _registry(url: str) -> "SchemaRegistry":
    from penstock.record_view.registry import SchemaRegistry  # late: imports an HTTP client

    return SchemaRegistry(url)


def _decoder(
    name: str, schema: Path | None, message: str | None, registry: "SchemaRegistry | None"
) -> Decode | None:
    match name:
        case "none":
            return None
        case "json":
            return decode_json
        case "msgpack":
            return decode_msgpack
        case "text":
            return decode_text
        case "auto":
            from penstock.record_view.detect import detecting  # late, as below

            known = [] if schema is None else [_by_file(schema, message)]
            return detecting(registry, known)
        case _ if schema is not None:
            return _by_file(schema, message, name)
        case _ if registry is not None:
            return registry.decode
        case _:
            raise ConfigError(f"--decode {name} needs a --schema or a --registry")


def _by_file(schema: Path, message: str | None, name: str = "auto") -> Decode:
    is_json = schema.suffix in {".avsc", ".json"}
    if name == "avro" or (name == "auto" and is_json):
        from penstock.record_view.avro import avro_file_decoder

        return avro_file_decoder(schema)
    from penstock.record_view.protobuf import protobuf_file_decoder

    return protobuf_file_decoder(schema, message)


def internal_view(topic: str) -> Callable[[Any], dict[str, str]] | None:
    """The decoder of an internal topic's records; None for other topics."""
    from penstock.cli.decoders import DECODERS, decoder_for  # late: imports all coordinators

    return decoder_for(topic) if topic in DECODERS else None
