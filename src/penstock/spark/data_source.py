"""The data source `penstock` as Spark finds it; readers and writers are imported when used."""

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.errors import ConfigError
from penstock.spark.options import Options

if TYPE_CHECKING:
    from penstock.spark.source.settings import SourceSettings

_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_HEADERS = {"headers": "array<struct<key: string, value: binary>>"}

logger = logging.getLogger("penstock.spark")


class PenstockSource(DataSource):
    """`spark.read.format("penstock")`: columns and options of the `kafka` format."""

    _resolved: Options | None = None

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self._columns().items())

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.source.batch_reader import batch_reader
        from penstock.spark.source.settings import batch_settings

        self._check(schema)
        settings, warnings = batch_settings(self._given())
        _log(warnings)
        return batch_reader(self._of_subject(settings))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from penstock.spark.source.settings import stream_settings
        from penstock.spark.source.stream_reader import StreamReader

        self._check(schema)
        settings, warnings = stream_settings(self._given())
        _log(warnings)
        settings = self._of_subject(settings)
        if settings.share_group is not None:
            from penstock.spark.source.share.reader import ShareStreamReader

            return ShareStreamReader(settings, settings.share_group)
        return StreamReader(settings)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        from penstock.spark.sink.writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, ARG002, N802
        from penstock.spark.sink.writer import stream_writer

        return stream_writer(self.options, schema)

    def _given(self) -> Options:
        """The options, with the columns that the registry's subject has now."""
        from penstock.spark.source.settings import REGISTRY, subject_of

        if self._resolved is None:
            options = Options(self.options)
            subject = subject_of(options)
            if subject is not None:
                from penstock.spark.confluent.values import reader_schema

                name, url = options.text("valueFormat").lower(), options.required(REGISTRY)
                columns = reader_schema(name, url, subject)
                options = Options({**self.options, "valueSchema": columns})
            self._resolved = options
        return self._resolved

    def _of_subject(self, settings: "SourceSettings") -> "SourceSettings":
        """The settings with the subject that defines the columns, if there is one."""
        from penstock.spark.source.settings import subject_of

        subject = subject_of(Options(self.options))
        if subject is None or settings.value is None:
            return settings
        return replace(settings, value=replace(settings.value, subject=subject))

    def _columns(self) -> dict[str, str]:
        options = self._given()
        columns = dict(_COLUMNS)
        if options.flag("includeHeaders", default=False):
            columns |= _HEADERS
        if "valueFormat" in options:
            columns |= _fields(options)
        return columns

    def _check(self, schema: StructType) -> None:
        if schema.names != list(self._columns()):
            raise ConfigError(
                "a schema cannot be given, since the columns are those of the kafka format; "
                "cast or parse key and value in the DataFrame"
            )


def _fields(options: Options) -> dict[str, str]:
    from penstock.spark.avro.schema import record_type
    from penstock.spark.source.settings import read_value

    value = read_value(options)
    return {} if value is None else {"fields": ddl(record_type(value.schema).spark)}


def ddl(kind: DataType) -> str:
    """A type in Spark's DDL, where names such as `first-name` need quotes."""
    match kind:
        case StructType():
            return f"struct<{','.join(f'{_name(each)}:{ddl(each.dataType)}' for each in kind)}>"
        case ArrayType():
            return f"array<{ddl(kind.elementType)}>"
        case MapType():
            return f"map<{ddl(kind.keyType)},{ddl(kind.valueType)}>"
        case _:
            return kind.simpleString()


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _name(field: StructField) -> str:
    return field.name if _PLAIN.fullmatch(field.name) else quoted(field.name)


def _log(warnings: list[str]) -> None:
    for each in warnings:
        logger.warning("penstock: %s", each)
