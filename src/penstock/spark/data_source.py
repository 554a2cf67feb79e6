"""The data source `penstock` as Spark finds it; readers and writers are imported when used."""

import logging

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.options import Options

_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_HEADERS = {"headers": "array<struct<key: string, value: binary>>"}

logger = logging.getLogger("penstock.spark")


class PenstockSource(DataSource):
    """`spark.read.format("penstock")`: columns and options of the `kafka` format."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self._columns().items())

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.source.batch_reader import batch_reader
        from penstock.spark.source.settings import batch_settings

        self._check(schema)
        settings, warnings = batch_settings(Options(self.options))
        _log(warnings)
        return batch_reader(settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from penstock.spark.source.settings import stream_settings
        from penstock.spark.source.stream_reader import StreamReader

        self._check(schema)
        settings, warnings = stream_settings(Options(self.options))
        _log(warnings)
        return StreamReader(settings)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        from penstock.spark.sink.writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, ARG002, N802
        from penstock.spark.sink.writer import stream_writer

        return stream_writer(self.options, schema)

    def _columns(self) -> dict[str, str]:
        options = Options(self.options)
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
    from penstock.spark.source.settings import read_value_schema

    schema = read_value_schema(options)
    return {} if schema is None else {"fields": record_type(schema).spark.simpleString()}


def _log(warnings: list[str]) -> None:
    for each in warnings:
        logger.warning("penstock: %s", each)
