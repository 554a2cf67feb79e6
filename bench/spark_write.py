"""Spark's writes with format `penstock`, beside Spark's own connector, in one session on one
broker.

`python -m bench spark_write [--rounds N] [--scale X] [--only SIZE]`. Each round runs every workload
once with each format; ratios are of medians. The connector's producer is tuned: large batches, a
little linger. The exactly-once copy stands beside the connector's copy, which is at-least-once.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench.interpreter import about
from bench.process import cpu_s
from bench.report import Report
from bench.spark_topic import SESSION
from bench.topic import topic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from peers.penstock import PenstockBroker
from peers.spark_session import spark_session

PARTITIONS = 4
WARM_ROUNDS = 2
"""The JVM compiles hot code in these rounds; before that it is half as fast."""
OURS, THEIRS = "Penstock", "Kafka"
FORMATS = {OURS: "penstock", THEIRS: "kafka"}
TUNED = {
    "kafka.batch.size": "524288",
    "kafka.linger.ms": "20",
    "kafka.buffer.memory": "134217728",
    "kafka.compression.type": "none",
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
}
READ_TUNED = {
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "67108864",
    "kafka.check.crcs": "false",
}
SIZES = {"100 B": (100, 1_500_000, 10_000), "1 KB": (1_000, 300_000, 2_000)}
"""Bytes of a value, rows, and rows per Arrow batch, so that batches stay within some megabytes."""
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
TIMES = 3
"""The copied topic has the rows this many times, because a query's start alone takes seconds."""
AIMS = {"batch write": ">= 1.0", "exactly-once copy": ">= 0.8"}


def rows(spark: SparkSession, size: int, number: int) -> DataFrame:
    """Rows with keys of ten digits and distinct values, cached in memory."""
    value = F.substring(
        F.concat(F.sha2(F.col("id").cast("string"), 512), F.lit("x" * size)), 1, size
    )
    made = spark.range(number, numPartitions=2).select(
        F.lpad(F.col("id").cast("string"), 10, "0").cast("binary").alias("key"),
        value.cast("binary").alias("value"),
    )
    made = made.cache()
    made.count()
    return made


def write(data: DataFrame, name: str, bootstrap: str, subject: str) -> None:
    writer = data.write.format(FORMATS[subject]).mode("append").option("topic", name)
    if subject == THEIRS:
        writer = writer.options(**TUNED)
    writer.option("kafka.bootstrap.servers", bootstrap).save()


def copy(spark: SparkSession, source: str, target: str, bootstrap: str, subject: str) -> None:
    """Copies a whole topic in one epoch, partition to partition."""
    made = FORMATS[subject]
    read = spark.readStream.format(made).option("kafka.bootstrap.servers", bootstrap)
    read = read.option("subscribe", source).option("startingOffsets", "earliest")
    if subject == THEIRS:
        read = read.options(**READ_TUNED)
    with tempfile.TemporaryDirectory() as checkpoint:
        columns = ["key", "value", "partition", *(["offset"] if subject == OURS else [])]
        write = read.load().select(*columns).writeStream.format(made).option("topic", target)
        write = write.option("kafka.bootstrap.servers", bootstrap)
        write = write.options(**({"transactional": "true"} if subject == OURS else TUNED))
        query = write.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()


@dataclass(slots=True)
class Bench:
    spark: SparkSession
    bootstrap: str
    jvm: int
    broker: int
    names: Iterator[str] = field(default_factory=lambda: (f"write-{n}" for n in count()))

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def topic(self) -> AbstractContextManager[str]:
        return topic(self.port, next(self.names), PARTITIONS)

    def figures(self, call: Callable[[str], None], rows: int) -> dict[str, float]:
        with self.topic() as target:
            before_s, start = self.cpu_s(), time.perf_counter()
            call(target)
            took_s = time.perf_counter() - start
            return {
                "rows/s": rows / took_s,
                "CPU us per row": (self.cpu_s() - before_s) / rows * 1e6,
            }

    def cpu_s(self) -> float:
        """CPU seconds of Spark, its Python workers and the broker."""
        return cpu_s([self.jvm, self.broker])

    def written(self, data: DataFrame, subject: str) -> dict[str, float]:
        return self.figures(lambda to: write(data, to, self.bootstrap, subject), data.count())

    def copied(self, source: str, subject: str, rows: int) -> dict[str, float]:
        return self.figures(lambda to: copy(self.spark, source, to, self.bootstrap, subject), rows)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench spark_write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of rows")
    parser.add_argument("--only", choices=SIZES, help="values of this size")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    asked = parser.parse_args(argv)
    described, report = about(), Report()
    with (
        tempfile.TemporaryDirectory() as work,
        PenstockBroker() as broker,
        spark_session(Path(work), settings=SESSION) as spark,
    ):
        assert spark.sparkContext._jvm is not None
        jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        bench = Bench(spark, broker.bootstrap, jvm, broker.pids[0])
        for label, (size, number, at_a_time) in SIZES.items():
            if asked.only not in {None, label}:
                continue
            spark.conf.set(ARROW_ROWS, at_a_time)
            data = rows(spark, size, wanted := int(number * asked.scale))
            with bench.topic() as source:
                for _ in range(TIMES):
                    write(data, source, broker.bootstrap, OURS)
                for turn in range(-WARM_ROUNDS, asked.rounds):
                    for subject in (OURS, THEIRS) if turn % 2 else (THEIRS, OURS):
                        found = (
                            bench.written(data, subject),
                            bench.copied(source, subject, TIMES * wanted),
                        )
                        for (name, aim), figures in zip(AIMS.items(), found, strict=True):
                            rate = figures["rows/s"]
                            print(f"{name} {label}, {subject}: {rate:,.0f} rows/s", file=sys.stderr)
                            if turn >= 0:
                                report.add(f"{name} {label}", subject, figures, {"rows/s": aim})
            data.unpersist()
    print(report.text())
    report.keep(asked.out, about=described, rounds=asked.rounds)
