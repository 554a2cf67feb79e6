"""Avro schemas as Spark's columns, by the same rules as Spark's own reader of Avro."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as t

from penstock.errors import ConfigError
from penstock.spark.avro.schema_file import SUFFIX

MAX_DECIMAL: Final = 38
"""Digits that Spark's decimals have at most."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of Avro: how fastavro is to read it, and what Arrow and Spark make of that."""

    avro: Any
    read: pa.DataType
    """What Arrow builds of the values that were read."""
    arrow: pa.DataType
    """What it makes of those for Spark, which takes nothing but its own types."""
    spark: t.DataType


_PLAIN: Final[dict[str, tuple[pa.DataType, t.DataType]]] = {
    "null": (pa.null(), t.NullType()),
    "boolean": (pa.bool_(), t.BooleanType()),
    "int": (pa.int32(), t.IntegerType()),
    "long": (pa.int64(), t.LongType()),
    "float": (pa.float32(), t.FloatType()),
    "double": (pa.float64(), t.DoubleType()),
    "bytes": (pa.binary(), t.BinaryType()),
    "string": (pa.string(), t.StringType()),
}
_MICROS: Final = pa.timestamp("us", tz="UTC")
_LOCAL_MICROS: Final = pa.timestamp("us")
_LOGICAL: Final[dict[tuple[str, str], tuple[pa.DataType, pa.DataType, t.DataType]]] = {
    ("int", "date"): (pa.date32(), pa.date32(), t.DateType()),
    ("long", "timestamp-millis"): (pa.timestamp("ms", tz="UTC"), _MICROS, t.TimestampType()),
    ("long", "timestamp-micros"): (_MICROS, _MICROS, t.TimestampType()),
    ("long", "local-timestamp-millis"): (pa.timestamp("ms"), _LOCAL_MICROS, t.TimestampNTZType()),
    ("long", "local-timestamp-micros"): (_LOCAL_MICROS, _LOCAL_MICROS, t.TimestampNTZType()),
    ("long", "time-micros"): (pa.time64("us"), pa.time64("ns"), t.TimeType(6)),
}
"""fastavro reads the numbers under them, which Arrow takes as they are: its own dates and times end
with the year 9999, Spark's do not. Other logical types are read as what lies under them.
"""
_WIDER: Final = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


def record_kind(schema: str) -> Kind:
    """The columns of a record; `ConfigError` for what is no schema, or none of a record."""
    try:
        from fastavro.schema import SchemaParseException, UnknownType, parse_schema
    except ModuleNotFoundError as error:
        raise ConfigError("format avro needs fastavro: pip install '.[spark]'") from error
    try:
        told: Any = parse_schema(json.loads(schema))
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"schema: format avro has one in JSON, or the name of a file {SUFFIX}: {error}"
        ) from error
    except UnknownType as error:
        raise ConfigError(f"schema: the type {error} is nowhere defined") from error
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"schema: no schema of Avro: {error!r}") from error
    if not isinstance(told, dict) or told.get("type") != "record":
        raise ConfigError("schema: format avro needs a record, whose fields become columns")
    return _Reading().kind(told, told["name"])


class _Reading:
    """One walk through a schema; named types are defined where they are met first."""

    def __init__(self) -> None:
        self._named: dict[str, Kind | None] = {}
        """None while a type is being read: meeting it then means that it contains itself."""
        self._unions = 0

    def kind(self, told: Any, where: str) -> Kind:
        if isinstance(told, list):
            return self._union(told, where)
        if isinstance(told, str):
            return self._of_name(told, where)
        made: Callable[[Any, str], Kind] | None = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(told["type"] if isinstance(told["type"], str) else "")
        if made is not None:
            return made(told, where)
        return _logical(told, where) or self.kind(told["type"], where)

    def _of_name(self, name: str, where: str) -> Kind:
        if name in _PLAIN:
            arrow, spark = _PLAIN[name]
            return Kind(name, arrow, arrow, spark)
        known = self._named[name]
        if known is None:
            raise ConfigError(f"schema: {where}: {name} contains itself, which no column can")
        return Kind(name, known.read, known.arrow, known.spark)

    def _record(self, told: Any, where: str) -> Kind:
        self._named[told["name"]] = None
        fields = {
            each["name"]: self.kind(each["type"], f"{where}.{each['name']}")
            for each in told["fields"]
        }
        if not fields:
            raise ConfigError(f"schema: {where}: a record without fields has no columns")
        return self._define(told["name"], _struct(told["name"], fields))

    def _enum(self, told: Any, _where: str) -> Kind:
        plain = {"type": "enum", "name": told["name"], "symbols": told["symbols"]}
        return self._define(told["name"], Kind(plain, pa.string(), pa.string(), t.StringType()))

    def _fixed(self, told: Any, where: str) -> Kind:
        plain = {"type": "fixed", "name": told["name"], "size": told["size"]}
        made = _logical({**told, "type": plain}, where)
        return self._define(
            told["name"], made or Kind(plain, pa.binary(), pa.binary(), t.BinaryType())
        )

    def _array(self, told: Any, where: str) -> Kind:
        item = self.kind(told["items"], f"{where}[]")
        avro = {"type": "array", "items": item.avro}
        arrow = pa.list_(pa.field("element", item.arrow))  # Spark's name for it
        return Kind(avro, pa.list_(item.read), arrow, t.ArrayType(item.spark))

    def _map(self, told: Any, where: str) -> Kind:
        value = self.kind(told["values"], f"{where}{{}}")
        return Kind(
            {"type": "map", "values": value.avro},
            pa.map_(pa.string(), value.read),
            pa.map_(pa.string(), value.arrow),
            t.MapType(t.StringType(), value.spark),
        )

    def _union(self, told: list[Any], where: str) -> Kind:
        """Null and one other are that other; several have a member each, all but one null."""
        some = [each for each in told if each != "null"]
        plain = {each for each in some if isinstance(each, str)}
        if not some:
            return self.kind("null", where)
        wider = _WIDER.get(frozenset(plain)) if len(some) == 2 else None
        if wider is not None:
            arrow, spark = _PLAIN[wider]
            return Kind(told, arrow, arrow, spark)
        if len(some) == 1:
            one = self.kind(some[0], where)
            avro = [each if each == "null" else one.avro for each in told]
            return Kind(avro, one.read, one.arrow, one.spark)
        return self._members(told, some, where)

    def _members(self, told: list[Any], some: list[Any], where: str) -> Kind:
        """A record takes no bytes of its own, so that a branch can be read as one with a single
        field, whose name then says which branch it was.
        """
        members = {
            f"member{number}": self.kind(each, f"{where}|{number}")
            for number, each in enumerate(some)
        }
        self._unions += 1
        named = iter(
            _struct(f"penstock.union{self._unions}.{name}", {name: kind}).avro
            for name, kind in members.items()
        )
        avro = [each if each == "null" else next(named) for each in told]
        whole = _struct("penstock.union", members)
        return Kind(avro, whole.read, whole.arrow, whole.spark)

    def _define(self, name: str, kind: Kind) -> Kind:
        self._named[name] = kind
        return kind


def _struct(name: str, fields: dict[str, Kind]) -> Kind:
    columns = [{"name": field, "type": kind.avro} for field, kind in fields.items()]
    return Kind(
        {"type": "record", "name": name, "fields": columns},
        pa.struct([(field, kind.read) for field, kind in fields.items()]),
        pa.struct([(field, kind.arrow) for field, kind in fields.items()]),
        t.StructType([t.StructField(field, kind.spark) for field, kind in fields.items()]),
    )


def _logical(told: Any, where: str) -> Kind | None:
    """The kind of a logical type that Spark has a like of."""
    under, name = told["type"], told.get("logicalType")
    if name == "decimal":
        precision, scale = told["precision"], told.get("scale", 0)
        if precision > MAX_DECIMAL:
            raise ConfigError(
                f"schema: {where}: a decimal of {precision} digits; Spark has {MAX_DECIMAL}"
            )
        avro = {**(under if isinstance(under, dict) else {"type": under}), "logicalType": name}
        arrow = pa.decimal128(precision, scale)
        avro |= {"precision": precision, "scale": scale}
        return Kind(avro, arrow, arrow, t.DecimalType(precision, scale))
    found = _LOGICAL.get((under, name)) if isinstance(under, str) else None
    return None if found is None else Kind(under, *found)
