"""Shared parts of the Spark source's tests: a session with a broker, rows, queries that end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import Record
from peers.penstock import PenstockBroker
from peers.process import wait_until
from peers.spark_session import spark_session

COLUMNS = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType")


@dataclass(frozen=True)
class Lab:
    """Spark, the broker that it reads from, and a client that writes to it."""

    spark: SparkSession
    penstock: PenstockBroker
    rdkafka: LibrdkafkaClient

    def read(self, source: str, options: Mapping[str, object]) -> DataFrame:
        return self.spark.read.format(source).options(**self._given(options)).load()

    def stream(self, source: str, options: Mapping[str, object]) -> DataFrame:
        return self.spark.readStream.format(source).options(**self._given(options)).load()

    def numbers(self, topic: str, count: int, partition: int = 0) -> None:
        """Writes `count` records to one partition."""
        records = [Record(b"%d" % n, partition=partition) for n in range(count)]
        # A new client each time: an old one may not know a partition that was just added.
        client = LibrdkafkaClient(self.penstock.bootstrap)
        client.produce(topic, records)
        client.close()

    def wait_for_rows(self, table: str, count: int) -> None:
        wait_until(lambda: self.spark.table(table).count() >= count, 60, f"{count} rows")

    def written(self, folder: Path) -> list[tuple[int, int]]:
        """Partition and offset of every row that runs have written to the folder."""
        frame = self.spark.read.parquet(str(folder / "out")).select("partition", "offset")
        return sorted((row["partition"], row["offset"]) for row in frame.collect())

    def _given(self, options: Mapping[str, object]) -> dict[str, Any]:
        given = {name: str(value) for name, value in options.items()}
        return {"kafka.bootstrap.servers": self.penstock.bootstrap, **given}


@contextmanager
def lab_beside(
    penstock: PenstockBroker,
    work: Path,
    cores: int = 2,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Lab]:
    client = LibrdkafkaClient(penstock.bootstrap)
    with spark_session(work, cores=cores, settings=settings) as spark:
        yield Lab(spark, penstock, client)
    client.close()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All columns of all rows, in the order of the log."""
    headers = ["headers"] if "headers" in frame.columns else []
    found = [tuple(row) for row in frame.select(*COLUMNS, *headers).collect()]
    return sorted(found, key=lambda row: row[:3])


def run_to_end(frame: DataFrame, folder: Path) -> StreamingQuery:
    """An availableNow run into a Parquet folder, with its checkpoint beside it."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90), "the query did not end"
    return query


def into_table(frame: DataFrame, folder: Path, name: str) -> StreamingQuery:
    """A continuing stream into a table in memory."""
    return (
        frame.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / name))
        .start()
    )
