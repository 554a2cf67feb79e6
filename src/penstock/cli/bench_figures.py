"""Figures of benchmarks, as the kafka-*-perf-test tools report them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

MB = 1024 * 1024
T = TypeVar("T", int, float)


SHARES = (("50", 0.5), ("95", 0.95), ("99", 0.99), ("999", 0.999))


def percentile(ordered: Sequence[T], share: float) -> T | int:
    """A percentile of sorted values, computed like kafka-producer-perf-test."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0


@dataclass(slots=True)
class BenchRun:
    """Counts of sent or read records, and their latencies."""

    records: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)

    def add(self, records: int, size_bytes: int, latency_ms: float) -> None:
        self.records += records
        self.size_bytes += size_bytes
        self.latencies_ms += [latency_ms] * records

    def row(self, **more: object) -> dict[str, object]:
        ordered = sorted(self.latencies_ms)
        seconds = self.seconds or 1e-9
        row = {
            **more,
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records / seconds, 1),
            "mb_per_second": round(self.size_bytes / MB / seconds, 2),
        }
        if ordered:
            row |= {
                "latency_avg_ms": round(sum(ordered) / len(ordered), 2),
                "latency_max_ms": round(ordered[-1], 2),
                **{
                    f"latency_p{name}_ms": round(percentile(ordered, share), 2)
                    for name, share in SHARES
                },
            }
        return row


def line(row: dict[str, object]) -> str:
    """The figures in the format of kafka-producer-perf-test's last line."""
    text = (
        f"{row['records']} records, {row['records_per_second']} records/sec "
        f"({row['mb_per_second']} MB/sec)"
    )
    if "latency_avg_ms" in row:
        text += (
            f", {row['latency_avg_ms']} ms avg latency, {row['latency_max_ms']} ms max latency, "
            f"{row['latency_p50_ms']} ms 50th, {row['latency_p95_ms']} ms 95th, "
            f"{row['latency_p99_ms']} ms 99th, {row['latency_p999_ms']} ms 99.9th"
        )
    return text + "."
