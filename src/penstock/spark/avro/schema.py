"""Translates Avro schemas to Spark's columns, by the rules of Spark's own Avro reader."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as t

from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.spark.avro.schema_file import SUFFIX

MAX_DECIMAL: Final = 38
"""The maximum precision of Spark's decimals."""


@dataclass(frozen=True, slots=True)
class AvroType:
    """An Avro type: how fastavro reads it, and its types in Arrow and Spark."""

    avro: Any
    read: pa.DataType
    """The Arrow type of the values that fastavro returns."""
    arrow: pa.DataType
    """The Arrow type that Spark accepts for the column."""
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
"""fastavro reads the underlying numbers, since Python's dates end with the year 9999 and Spark's do
not. Other logical types are read as their underlying types.
"""
_WIDER: Final = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


def record_type(schema: str) -> AvroType:
    """The columns of a record schema; `ConfigError` for anything else."""
    try:
        from fastavro.schema import SchemaParseException, UnknownType, parse_schema
    except ModuleNotFoundError as error:
        raise ConfigError(f"format avro needs fastavro: {install('spark')}") from error
    try:
        node: Any = parse_schema(json.loads(schema))
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"schema: format avro needs JSON, or the name of a file {SUFFIX}: {error}"
        ) from error
    except UnknownType as error:
        raise ConfigError(f"schema: the type {error} is not defined") from error
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"schema: not an Avro schema: {error!r}") from error
    if not isinstance(node, dict) or node.get("type") != "record":
        raise ConfigError("schema: format avro needs a record, whose fields become columns")
    return _SchemaWalk().kind(node, node["name"])


class _SchemaWalk:
    """One walk through a schema; a named type is defined at its first occurrence."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}
        """None while a type is being read: if it occurs then, it contains itself."""
        self._unions = 0

    def kind(self, node: Any, where: str) -> AvroType:
        if isinstance(node, list):
            return self._union(node, where)
        if isinstance(node, str):
            return self._of_name(node, where)
        made: Callable[[Any, str], AvroType] | None = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(node["type"] if isinstance(node["type"], str) else "")
        if made is not None:
            return made(node, where)
        return _logical(node, where) or self.kind(node["type"], where)

    def _of_name(self, name: str, where: str) -> AvroType:
        if name in _PLAIN:
            arrow, spark = _PLAIN[name]
            return AvroType(name, arrow, arrow, spark)
        known = self._named[name]
        if known is None:
            raise ConfigError(f"schema: {where}: {name} contains itself, which a column cannot")
        return AvroType(name, known.read, known.arrow, known.spark)

    def _record(self, node: Any, where: str) -> AvroType:
        self._named[node["name"]] = None
        fields = {
            each["name"]: self.kind(each["type"], f"{where}.{each['name']}")
            for each in node["fields"]
        }
        if not fields:
            raise ConfigError(f"schema: {where}: a record without fields has no columns")
        return self._define(node["name"], _struct(node["name"], fields))

    def _enum(self, node: Any, _where: str) -> AvroType:
        plain = {"type": "enum", "name": node["name"], "symbols": node["symbols"]}
        return self._define(node["name"], AvroType(plain, pa.string(), pa.string(), t.StringType()))

    def _fixed(self, node: Any, where: str) -> AvroType:
        plain = {"type": "fixed", "name": node["name"], "size": node["size"]}
        made = _logical({**node, "type": plain}, where)
        return self._define(
            node["name"], made or AvroType(plain, pa.binary(), pa.binary(), t.BinaryType())
        )

    def _array(self, node: Any, where: str) -> AvroType:
        item = self.kind(node["items"], f"{where}[]")
        avro = {"type": "array", "items": item.avro}
        arrow = pa.list_(pa.field("element", item.arrow))  # Spark's name for it
        return AvroType(avro, pa.list_(item.read), arrow, t.ArrayType(item.spark))

    def _map(self, node: Any, where: str) -> AvroType:
        value = self.kind(node["values"], f"{where}{{}}")
        return AvroType(
            {"type": "map", "values": value.avro},
            pa.map_(pa.string(), value.read),
            pa.map_(pa.string(), value.arrow),
            t.MapType(t.StringType(), value.spark),
        )

    def _union(self, node: list[Any], where: str) -> AvroType:
        """Null and one other type mean that type; several become a struct, a member for each."""
        some = [each for each in node if each != "null"]
        plain = {each for each in some if isinstance(each, str)}
        if not some:
            return self.kind("null", where)
        wider = _WIDER.get(frozenset(plain)) if len(some) == 2 else None
        if wider is not None:
            arrow, spark = _PLAIN[wider]
            return AvroType(node, arrow, arrow, spark)
        if len(some) == 1:
            one = self.kind(some[0], where)
            avro = [each if each == "null" else one.avro for each in node]
            return AvroType(avro, one.read, one.arrow, one.spark)
        return self._members(node, some, where)

    def _members(self, node: list[Any], some: list[Any], where: str) -> AvroType:
        """Reads each branch as a record with a single field, whose name tells the branch: a record
        adds no bytes of its own, and fastavro names branches of records only. These records have no
        namespace, which the names inside them would get.
        """
        members = {
            f"member{number}": self.kind(each, f"{where}|{number}")
            for number, each in enumerate(some)
        }
        self._unions += 1
        named = iter(
            _struct(f"penstock_union{self._unions}_{name}", {name: kind}).avro
            for name, kind in members.items()
        )
        avro = [each if each == "null" else next(named) for each in node]
        whole = _struct("penstock.union", members)
        return AvroType(avro, whole.read, whole.arrow, whole.spark)

    def _define(self, name: str, kind: AvroType) -> AvroType:
        self._named[name] = kind
        return kind


def _struct(name: str, fields: dict[str, AvroType]) -> AvroType:
    columns = [{"name": field, "type": kind.avro} for field, kind in fields.items()]
    return AvroType(
        {"type": "record", "name": name, "fields": columns},
        pa.struct([(field, kind.read) for field, kind in fields.items()]),
        pa.struct([(field, kind.arrow) for field, kind in fields.items()]),
        t.StructType([t.StructField(field, kind.spark) for field, kind in fields.items()]),
    )


def _logical(node: Any, where: str) -> AvroType | None:
    """A logical type that Spark has too; None for others, and for those that Avro ignores."""
    under, name = node["type"], node.get("logicalType")
    if name == "decimal" and (under == "bytes" or isinstance(under, dict)):
        precision, scale = node.get("precision"), node.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or precision < 1:
            return None
        if precision > MAX_DECIMAL:
            raise ConfigError(
                f"schema: {where}: a decimal of {precision} digits; Spark has at most {MAX_DECIMAL}"
            )
        avro = {**(under if isinstance(under, dict) else {"type": under}), "logicalType": name}
        arrow = pa.decimal128(precision, scale)
        avro |= {"precision": precision, "scale": scale}
        return AvroType(avro, arrow, arrow, t.DecimalType(precision, scale))
    found = _LOGICAL.get((under, name)) if isinstance(under, str) else None
    return None if found is None else AvroType(under, *found)
