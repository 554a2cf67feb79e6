"""Avro schemas, parsed and compared by Apache's library."""

import json
from functools import cached_property
from typing import Any

from penstock.registry.formats.avro_text import avro_text
from penstock.registry.formats.parsed import BrokenSchema, Imported, ParsedSchema


class AvroSchema:
    """A parsed schema: its JSON, and the library's object."""

    def __init__(self, text: str, imported: Imported) -> None:
        from avro.name import Names  # late: rarely needed

        names = Names()
        for name, each in imported:
            _parsed(_read(each), names, f"the reference {name}: ")
        self._node = _read(text)
        self._schema = _parsed(self._node, names)

    @cached_property
    def canonical(self) -> str:
        return avro_text(self._node)

    def normalized(self) -> str:
        return avro_text(self._node, sort_properties=True)

    def formatted(self, name: str) -> str | None:
        return self.canonical if name in {"", "default"} else None

    def cannot_read(self, writer: ParsedSchema) -> list[str]:
        from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

        assert isinstance(writer, AvroSchema)
        # A new checker for each comparison: it caches pairs by their memory addresses.
        checker: Any = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(self._schema, writer._schema)  # noqa: SLF001  its own class
        if found.compatibility is SchemaCompatibilityType.compatible:
            return []
        kinds = ", ".join(sorted({each.name.upper() for each in found.incompatibilities}))
        where = ", ".join(sorted("/".join(each.split("/")) for each in found.locations))
        about = "; ".join(sorted(found.messages))
        return [f"{{errorType:'{kinds}', description:'{about}', at '{where}'}}"]


def parse_avro(text: str, imported: Imported) -> ParsedSchema:
    try:
        found = AvroSchema(text, imported)
        _ = found.canonical
    except BrokenSchema:
        raise
    except ValueError:
        raise BrokenSchema("it has a number that JSON cannot have") from None
    except RecursionError:
        raise BrokenSchema("it is nested too deeply") from None
    return found


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        # Like Confluent's registry, take a bare word for the name of a type.
        if text.strip().isalpha():
            return text.strip()
        raise BrokenSchema(f"not JSON: {error}") from None


def _parsed(node: Any, names: Any, about: str = "") -> Any:
    from avro.errors import AvroException
    from avro.schema import make_avsc_object

    try:
        return make_avsc_object(node, names)
    except (AvroException, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BrokenSchema(f"{about}{str(error) or type(error).__name__}") from None
