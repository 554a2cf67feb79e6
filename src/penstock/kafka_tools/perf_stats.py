"""Latency statistics of the perf tests, printed in Kafka's format."""

from collections.abc import Mapping, Sequence

from penstock.cli.bench_figures import MB as MEGABYTE
from penstock.cli.bench_figures import SHARES, percentile

NAMES = {"999": "99.9"}


class LatencyStats:
    """Latencies in ms of all records, and of those since the last report. Time is an argument."""

    def __init__(self, started_s: float) -> None:
        self._started_s, self._window_s = started_s, started_s
        self._latencies: list[int] = []
        self._bytes = 0
        self._window_first, self._window_bytes = 0, 0

    def record(self, latencies_ms: Sequence[int], size_bytes: int) -> None:
        self._latencies += latencies_ms
        self._bytes += size_bytes

    def window_line(self, now_s: float) -> str:
        """The report line for the time since the last report."""
        latencies = self._latencies[self._window_first :]
        seconds = max(now_s - self._window_s, 1e-3)
        size = self._bytes - self._window_bytes
        line = (
            f"{len(latencies)} records sent, {len(latencies) / seconds:.1f} records/sec "
            f"({size / MEGABYTE / seconds:.2f} MB/sec), {_mean(latencies):.1f} ms avg latency, "
            f"{max(latencies, default=0):.1f} ms max latency."
        )
        self._window_s, self._window_first = now_s, len(self._latencies)
        self._window_bytes = self._bytes
        return line

    def metrics(self, now_s: float) -> dict[str, float]:
        """The producer's metrics, by Kafka's names."""
        seconds, count = max(now_s - self._started_s, 1e-3), len(self._latencies)
        return {
            "record-send-total": float(count),
            "record-send-rate": count / seconds,
            "byte-total": float(self._bytes),
            "byte-rate": self._bytes / seconds,
            "request-latency-avg": _mean(self._latencies),
            "request-latency-max": float(max(self._latencies, default=0)),
        }

    def total_line(self, now_s: float) -> str:
        seconds = max(now_s - self._started_s, 1e-3)
        count = len(self._latencies)
        ordered = sorted(self._latencies) or [0]
        at = {f"{NAMES.get(name, name)}th": percentile(ordered, share) for name, share in SHARES}
        return (
            f"{count} records sent, {count / seconds:f} records/sec "
            f"({self._bytes / MEGABYTE / seconds:.2f} MB/sec), {_mean(ordered):.2f} ms avg "
            f"latency, {ordered[-1]:.2f} ms max latency, "
            + ", ".join(f"{value} ms {name}" for name, value in at.items())
            + "."
        )


def print_metrics(group: str, client_id: str, values: Mapping[str, float]) -> None:
    """Print `--print-metrics`: the figures with the names and layout of Kafka's tools."""
    named = {f"{group}:{name}:{{client-id={client_id}}}": values[name] for name in sorted(values)}
    width = max(map(len, named))
    print(f"\n{'Metric Name':<{width}}   Value")
    for name, value in named.items():
        print(f"{name:<{width}} : {value:.3f}")


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
