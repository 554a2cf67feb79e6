"""Detects the format of keys and values, by the schema registry if there is one, or
by the bytes.
"""

from typing import Final
from xml.parsers import expat

from penstock.clock import Clock
from penstock.errors import ConfigError
from penstock.record_view.decoded import Decoded, Undecodable
from penstock.record_view.detect import detected
from penstock.record_view.registry import PREFIX_BYTES, SchemaRegistry, has_schema_id

UNKNOWN_MS: Final = 30_000
MOST_UNKNOWN: Final = 100_000


class Decoder:
    """Decodes any bytes. The registry request blocks, so call it in a thread.

    A schema id that the registry did not return is not requested again for `UNKNOWN_MS`: any value
    may begin with a zero byte. The entry expires because the registry may have been down.
    """

    def __init__(self, registry: SchemaRegistry | None, clock: Clock) -> None:
        self._registry, self._clock = registry, clock
        self._unknown: dict[bytes, int] = {}
        """Schema prefix to the time until which it counts as unknown."""

    def __call__(self, data: bytes) -> Decoded:
        registry, schema_id = self._registry, data[:PREFIX_BYTES]
        if registry is not None and has_schema_id(data):
            now_ms = self._clock.monotonic_ms()
            if self._unknown.get(schema_id, now_ms) <= now_ms:
                try:
                    return registry.decode(data)
                except Undecodable:
                    pass  # only this value is broken, not the schema
                except ConfigError:
                    if len(self._unknown) >= MOST_UNKNOWN:
                        self._unknown = {}
                    self._unknown[schema_id] = self._clock.monotonic_ms() + UNKNOWN_MS
        found = detected(data)
        if found.format == "text":
            return Decoded("xml" if is_xml(data) else "text", found.value)
        if found.format == "binary":
            return Decoded("hex", data.hex())
        return found


def is_xml(data: bytes) -> bool:
    """Whether the data is well-formed XML. A document that declares entities counts as not XML."""
    if not data.lstrip().startswith(b"<"):
        return False
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("entities may expand without end")

    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003  expat's own
    except (expat.ExpatError, ValueError):
        return False
    return True
