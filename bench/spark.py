"""Reads with Spark, beside Spark's own connector: python -m bench spark [--rounds N] [--rows N]

One warm session, rounds interleaved, medians. The connector is tuned (large partition fetches, no
CRC checks); our source has its defaults. Both read from the same Penstock broker.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.interpreter import about
from bench.report import Report
from bench.spark_topic import SESSION, Topic, batch_of, fill
from bench.subject import Penstock
from bench.timing import best_s
from pyspark.sql import DataFrame, SparkSession

from peers.spark_session import spark_session
from penstock.client.address import Address
from penstock.spark.client.settings import ClientSettings
from penstock.spark.decode.columns import PartitionColumns, RecordBounds
from penstock.spark.decode.decoder import NATIVE
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import VisibleBatches

FORMATS = {
    "Penstock": ("penstock", {}),
    "Kafka": (
        "kafka",
        {"kafka.max.partition.fetch.bytes": str(8 << 20), "kafka.check.crcs": "false"},
    ),
}
"""By the report's column names: our source, and Spark's Kafka connector."""
MEMORY_MB = 300


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    topic: Topic
    run: Callable[["Bench", str, Topic], float | None]
    """Returns the seconds of the micro-batches of a stream; None for a batch query."""
    aim: str


class Bench:
    """A session and a broker; every query reads a whole topic."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.spark, self._bootstrap, self._folder = spark, bootstrap, folder

    def batch(self, subject: str, topic: Topic) -> DataFrame:
        source, options = FORMATS[subject]
        given = {"kafka.bootstrap.servers": self._bootstrap, "subscribe": topic.name, **options}
        return self.spark.read.format(source).options(**given).load()

    def stream(self, subject: str, topic: Topic, sink: str) -> float:
        source, options = FORMATS[subject]
        given = {"kafka.bootstrap.servers": self._bootstrap, "subscribe": topic.name, **options}
        frame = self.spark.readStream.format(source).options(**given, startingOffsets="earliest")
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        query = (
            frame.load()
            .writeStream.format(sink)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .option("path", str(folder / "out"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        shutil.rmtree(folder)
        return sum(each.durationMs["triggerExecution"] for each in query.recentProgress) / 1000


def to_nowhere(bench: Bench, subject: str, topic: Topic) -> None:
    bench.batch(subject, topic).write.format("noop").mode("overwrite").save()


def aggregated(bench: Bench, subject: str, topic: Topic) -> None:
    frame = bench.batch(subject, topic).selectExpr("key", "length(value) as size", "offset")
    frame.groupBy("key").agg({"size": "sum", "offset": "max"}).collect()


def streamed_to_nowhere(bench: Bench, subject: str, topic: Topic) -> float:
    return bench.stream(subject, topic, "noop")


def streamed_to_parquet(bench: Bench, subject: str, topic: Topic) -> float:
    return bench.stream(subject, topic, "parquet")


def workloads(rows: int) -> Iterator[Workload]:
    small = Topic("bench-100", 100, rows)
    large = Topic("bench-1000", 1000, rows // 4)
    yield Workload("batch to noop, 100 B", small, to_nowhere, ">= 1.5")
    yield Workload("batch to noop, 1 KB", large, to_nowhere, ">= 1.25")
    yield Workload("batch with aggregation, 100 B", small, aggregated, ">= 1.5")
    yield Workload("availableNow to noop, 100 B", small, streamed_to_nowhere, ">= 1.3")
    yield Workload("availableNow to Parquet, 100 B", small, streamed_to_parquet, ">= 1.3")


def measure(bench: Bench, settings: ClientSettings, rows: int, rounds: int) -> Report:
    report = Report()
    held = {}
    planned = list(workloads(rows))
    for workload in planned:
        if workload.topic not in held:
            held[workload.topic] = fill(settings, workload.topic)
    # The first round warms the JVM, the workers and the page cache.
    for round_ in range(rounds + 1):
        for workload in planned:
            for subject in FORMATS:
                began_s = time.monotonic()
                batch_s = workload.run(bench, subject, workload.topic)
                took_s = time.monotonic() - began_s
                figures = {"rows/s": held[workload.topic] / took_s}
                if batch_s is not None:
                    # The rest is the query's start and end; for our source Spark starts a process
                    # there.
                    figures["rows/s of the micro-batch"] = held[workload.topic] / batch_s
                    figures["s besides"] = took_s - batch_s
                if round_:
                    report.add(workload.name, subject, figures, {"rows/s": workload.aim})
    return report


def decoders() -> None:
    """Prints microseconds per record for all work between a fetch response and Arrow."""
    kinds: dict[str, type] = {"numpy": VectorisedDecoder}
    if NATIVE:
        from penstock.spark.decode.native import NativeDecoder

        kinds["C"] = NativeDecoder
    for record_bytes in (100, 1000):
        batch, count = batch_of(record_bytes)
        fetched = batch * ((4 << 20) // len(batch))
        records = len(fetched) // len(batch) * count
        for name, kind in kinds.items():

            def decode(kind: type = kind, fetched: bytes = fetched) -> None:
                decoder = kind(RecordBounds(), with_headers=False)
                columns = PartitionColumns("topic", 0, with_headers=False)
                batches = VisibleBatches(RecordBounds(), [], check_crcs=True, scratch=None)
                found = decoder.decode(memoryview(fetched), batches, plain=True)
                for decoded in (*found, *decoder.rest()):
                    columns.completed(decoded)

            took_us = best_s(decode) / records * 1e6
            print(f"decoder, {name}, {record_bytes} B: {took_us:.3f} us per record")


def worker_memory_mb() -> float:
    """The peak memory of the largest Python worker of Spark."""
    most = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
            if b"pyspark.daemon" in command:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                most = max(most, int(lines["VmHWM"].split()[0]) / 1024)
        except (OSError, KeyError):
            continue  # the process has ended, or is a kernel thread
    return most


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench spark")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="of 100 bytes; a quarter of 1 KB"
    )
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    options = parser.parse_args(argv)
    described = about()
    decoders()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        broker = Penstock(stack)
        spark = stack.enter_context(spark_session(folder, settings=SESSION))
        settings = ClientSettings((Address("127.0.0.1", broker.port),))
        bench = Bench(spark, f"127.0.0.1:{broker.port}", folder)
        report = measure(bench, settings, options.rows, options.rounds)
        print(report.text())
        report.keep(options.out, about=described, rounds=options.rounds)
        print(f"largest Python worker: {worker_memory_mb():.0f} MB (at most {MEMORY_MB})")
