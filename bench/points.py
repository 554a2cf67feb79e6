"""What makes a log fast, each point switched on and off.

The points: batch size, partitions, producers, compression, sequential append, zero copy.
"""

from collections.abc import Iterator
from dataclasses import replace

from bench.batch import KB_1, KB_16, KB_64, MB_1, Batch
from bench.report import Report
from bench.workload import Bench, Measurement, Workload

from penstock.record.compression import Codec

FLUSHED = (("flush.messages", "1"),)


def produce(
    name: str, batch: Batch, *, in_flight: int = 1, partitions: int = 1, connections: int = 1
) -> Workload:
    return Workload(
        name=name,
        kind="produce",
        per="GB",
        batch=batch,
        in_flight=in_flight,
        partitions=partitions,
        connections=connections,
    )


def points() -> Iterator[Workload]:
    for batch, size in ((KB_1, "1 KB"), (KB_16, "16 KB"), (KB_64, "64 KB"), (MB_1, "1 MB")):
        yield produce(f"batch size: {size}", batch)
    for partitions in (1, 8, 64):
        yield produce(f"partitions: {partitions}", KB_16, in_flight=5, partitions=partitions)
    for producers in (1, 4, 16):
        yield produce(f"producers: {producers}", KB_16, connections=producers, partitions=16)
    yield produce("batching: off, 1 record per request", KB_1, in_flight=5)
    yield produce("batching: on, 64 KB", KB_64, in_flight=5)
    for codec in Codec:
        yield produce(f"compression: {codec.name.lower()}", replace(KB_64, codec=codec))
    yield produce("append: one log, page cache", KB_64)
    yield produce("append: 500 logs in turn", KB_64, partitions=500)
    yield replace(produce("append: forced to disk each", KB_64), topic_config=FLUSHED)
    yield produce("segments: of 1 GB", KB_64)
    yield replace(produce("segments: of 1 MB", KB_64), topic_config=(("segment.bytes", "1048576"),))


def per_record(measured: Measurement) -> dict[str, float]:
    """Rates per record, so that batches of any size and codec compare."""
    done, batch = measured.load, measured.workload.batch
    records = done.requests * batch.records
    return {
        "records/s": records / done.seconds,
        "CPU us per record": measured.cpu_s / records * 1e6,
        "bytes sent per record": done.bytes / records,
    }


def measure_points(benches: list[Bench], rounds: int) -> Report:
    report = Report()
    for _ in range(rounds):
        for workload in points():
            for bench in benches:
                report.add(workload.name, bench.subject.name, per_record(bench.measure(workload)))
    return report
