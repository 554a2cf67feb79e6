"""Value formats: parse a record's value into columns, or say why that fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from penstock.errors import ConfigError
from penstock.spark.avro.schema import record_type
from penstock.spark.pipeline.access_log import access_log_fields
from penstock.spark.pipeline.expectation import true
from penstock.spark.pipeline.flow_spec import CONFLUENT, FORMATS, NEED_SCHEMA

ERROR: Final = "_error"
"""The column with the reason why a value could not be read; null if it could."""
RECORD: Final = "_record"
"""The column with the record that a row was read from."""
RECORD_FIELDS: Final = ("key", "value", "topic", "partition", "offset", "timestamp")
LETTER_FIELDS: Final = (*RECORD_FIELDS, "headers")
"""The record's fields for rows that may become dead letters, which keep their headers."""
LINE_FIELDS: Final = ("value", "file", "position")
"""The record's fields for a line of a file."""
FIELDS: Final = "_fields"
_CORRUPT: Final = "_corrupt"
MAY_GO_ON: Final = r"\}[\s\x00]*(?:,\s*\{|[^\s\x00,\]}])"
"""What is in a value that goes on after its JSON object, and otherwise only in few: a brace in a
text, or an array of objects. Brackets, commas and NULs at the end of a value lose nothing.
"""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A format by name; JSON and CSV have a schema in Spark's DDL, Avro one in Avro's JSON."""

    name: str
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.name not in FORMATS:
            raise ConfigError(f"format {self.name!r}: use one of {', '.join(FORMATS)}")
        if self.name in NEED_SCHEMA and not self.schema:
            raise ConfigError(f"format {self.name}: needs a schema, such as 'id int, at timestamp'")
        if self.name not in NEED_SCHEMA and self.schema:
            raise ConfigError(f"format {self.name}: has its own columns, leave the schema out")
        if self.name == "avro":
            record_type(self.schema or "")


def source_options(value_format: ValueFormat | None) -> dict[str, str]:
    """The source's options: it decodes Avro itself, which Spark cannot."""
    if value_format is not None and value_format.name in CONFLUENT:
        return {"valueFormat": value_format.name}
    if value_format is None or value_format.name != "avro":
        return {}
    return {"valueFormat": "avro", "valueSchema": value_format.schema or ""}


def parsed(
    records: DataFrame,
    value_format: ValueFormat,
    record_fields: Sequence[str] = RECORD_FIELDS,
) -> DataFrame:
    """The record as a struct, its fields as another, and `_error`.

    No function here looks at a schema (`df.columns` and the like): Declarative Pipelines forbid
    that inside query functions.
    """
    fields, error = _fields(value_format)
    whole = F.struct(*record_fields).alias(RECORD)
    return records.select(whole, "value", fields.alias(FIELDS)).select(
        RECORD, error.alias(ERROR), FIELDS
    )


def with_fields(read: DataFrame, *, with_record: bool = False) -> DataFrame:
    """The readable rows of `parsed`, with fields as columns, after the record if requested."""
    rows = read.where(F.col(ERROR).isNull())
    return rows.select(*([RECORD] if with_record else []), f"{FIELDS}.*").drop(_CORRUPT)


def all_readable(read: DataFrame) -> DataFrame:
    """The same rows; the first unreadable one fails the query."""
    fail = F.raise_error(F.col(ERROR)).cast("boolean")
    return read.where(F.when(F.col(ERROR).isNull(), true()).otherwise(fail))


def unreadable(read: DataFrame) -> DataFrame:
    return read.where(F.col(ERROR).isNotNull())


def _fields(value_format: ValueFormat) -> tuple[Column, Column]:
    """The struct of the fields, and the reason if the value cannot be read."""
    text = F.col("value").cast("string")
    name, schema = value_format.name, value_format.schema or ""
    corrupt = F.col(f"{FIELDS}.{_CORRUPT}").isNotNull()
    permissive = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    match name:
        case "json":
            fields = F.from_json(text, f"{schema}, {_CORRUPT} string", permissive)
            return fields, _reason(F.col(FIELDS).isNull() | corrupt | _goes_on(text), name, schema)
        case "csv":
            fields = F.from_csv(text, f"{schema}, {_CORRUPT} string", permissive)
            return fields, _reason(F.col(FIELDS).isNull() | corrupt, name, schema)
        case "avro" | "confluent-avro" | "confluent-protobuf" | "confluent-json":
            return F.col("fields"), _reason(F.col(FIELDS).isNull(), name, "its schema")
        case "text":
            return F.struct(text.alias("line")), _reason(F.col("value").isNull(), name, "a line")
        case _:
            fields = access_log_fields(text)
            return fields, _reason(F.col(f"{FIELDS}.at").isNull(), name, "the combined log format")


def _goes_on(text: Column) -> Column:
    """Whether something follows the JSON object, such as another one: Spark reads the first and
    ignores the rest. Only values that may be so are parsed once more, as an array: the same parser
    then expects a comma behind the object, or the end. It skips the objects' fields.
    """
    array = F.concat(F.lit("["), F.rtrim(text, F.lit(" \t\r\n,\0")), F.lit("]"))
    objects = F.from_json(array, "array<struct<_none: int>>")
    return text.rlike(MAY_GO_ON) & (F.coalesce(F.size(objects), F.lit(0)) != 1)


def _reason(wrong: Column, name: str, wanted: str) -> Column:
    """Why a value cannot be read. A null value, a tombstone, has its own reason."""
    reason = F.when(F.col("value").isNull(), F.lit(f"no value, where {name} was expected"))
    return reason.when(wrong, F.lit(f"the value is not {name} of {wanted}"))
