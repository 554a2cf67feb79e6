"""Finds the format of keys and values: by the schema registry, if there is one, or by the bytes."""

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
    """Decodes any bytes. Asking the registry blocks: call it in a thread.

    What the registry does not know is not asked for again soon: any value may begin with a zero
    byte, and a registry that is away comes back.
    """

    def __init__(self, registry: SchemaRegistry | None, clock: Clock) -> None:
        self._registry, self._clock = registry, clock
        self._unknown: dict[bytes, int] = {}
        """Until when, by schema id."""

    def __call__(self, data: bytes) -> Decoded:
        registry, schema_id = self._registry, data[:PREFIX_BYTES]
        if registry is not None and has_schema_id(data):
            now_ms = self._clock.monotonic_ms()
            if self._unknown.get(schema_id, now_ms) <= now_ms:
                try:
                    return registry.decode(data)
                except Undecodable:
                    pass  # others with this schema are whole
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
    """Whether it is well-formed. A document that declares entities is not looked into."""
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
