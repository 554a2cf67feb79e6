"""Reads JSON by the schema of its id. Pure.

Producers need not validate JSON. If only the columns of a query decided, a value could be null
before a restart and readable after it, because the subject has other columns by then. Two queries
that divide the values among them, readable ones and nulls, would then both take it, or neither.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from penstock.errors import ConfigError
from penstock.spark.avro.schema import record_type
from penstock.spark.confluent.fit import Fits, fitting
from penstock.spark.confluent.json_columns import json_columns
from penstock.spark.confluent.not_readable import NotReadable

Narrow: TypeAlias = Callable[[Any], Any]


class JsonReader:
    """Reads a value as an object, and knows what its own schema declares, if that has columns."""

    def __init__(self, schema: str) -> None:
        self.fits: Fits = lambda _: True
        """Whether a value has the types that its schema declares."""
        self.declared: Narrow = lambda found: found
        """A value without the properties that its schema does not declare. These may have any type,
        whatever a later version declares.
        """
        with suppress(ConfigError, msgspec.DecodeError):
            columns = json_columns(msgspec.json.decode(schema))
            self.fits = fitting(record_type(msgspec.json.encode(columns).decode()).read)
            self.declared = _declared(columns)

    def __call__(self, data: bytes) -> Any:
        try:
            found = msgspec.json.decode(data)
        except RecursionError:
            raise NotReadable("nested too deeply") from None
        if not isinstance(found, dict):
            raise NotReadable("not an object")
        return found


def _declared(kind: Any) -> Narrow:
    """Narrows values that fit."""
    if isinstance(kind, list):  # a union of null and another type
        kind = kind[1]
    match kind:
        case {"type": "record", "fields": fields}:
            parts = {each["name"]: _declared(each["type"]) for each in fields}
            return lambda found: (
                None
                if found is None
                else {name: parts[name](each) for name, each in found.items() if name in parts}
            )
        case {"type": "array", "items": items}:
            item = _declared(items)
            return lambda found: None if found is None else [item(each) for each in found]
        case {"type": "map", "values": values}:
            value = _declared(values)
            return lambda found: (
                None if found is None else {name: value(each) for name, each in found.items()}
            )
        case _:
            return lambda found: found
