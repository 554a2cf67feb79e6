"""What is said of log-based brokers, beside what the runs of this page show."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.report import rounded, rows_of
from bench.tables import Part


def claims(parts: Mapping[str, Part]) -> list[tuple[str, str, str]]:
    """Claims about log-based brokers, with what the runs above show."""
    found = Found(*(parts.get(name, {}) for name in ("broker", "points", "growth")))
    return [
        (
            "A plain server takes 100,000 messages a second",
            found.point("batching: on, 64 KB", "records/s") + " of 1 KB from one connection",
            command("broker --points"),
        ),
        (
            "A broker takes 200 GB an hour (56 MB/s)",
            found.load("produce 64 KB of 1,000 B records", "MB/s") + " MB/s",
            command("broker"),
        ),
        (
            "Larger batches, more partitions and more producers are faster (A032)",
            "; ".join(
                f"{name} {found.point(name, 'records/s')} records/s"
                for name in (
                    "batch size: 1 KB",
                    "batch size: 1 MB",
                    "partitions: 1",
                    "partitions: 64",
                    "producers: 1",
                    "producers: 16",
                )
            ),
            command("broker --points"),
        ),
        (
            "Throughput is best with records of about 10 KB and falls above (A158)",
            "MB/s by record size: " + found.growth("record bytes", "MB/s"),
            command("growth --select record"),
        ),
        (
            "Latency is worse than a message queue's (A169): no such queue beside it here",
            f"end to end p50 {found.latency('p50 us')} us, p99 {found.latency('p99 us')} us",
            command("broker"),
        ),
        (
            "Batches, compression, sequential writes and zero copy each make it fast (A170)",
            "the tables of points: rows with batching, compression, append, sendfile",
            command("broker --points"),
        ),
        (
            "Readers that keep pace need no disk (A178)",
            found.disk("fetched"),
            command("broker --points"),
        ),
        (
            "Larger segments are cheaper; sequential disk beats random memory (A179)",
            f"CPU us per record {found.point('segments: of 1 GB', 'CPU us per record')} with 1 GB "
            f"segments, {found.point('segments: of 1 MB', 'CPU us per record')} with 1 MB; "
            + found.disk("sequential"),
            command("broker --points"),
        ),
    ]


def command(arguments: str) -> str:
    return f'`make bench ARGS="{arguments}"`'


class Found:
    """Penstock's figures of the last runs, as text."""

    def __init__(self, broker: Part, points: Part, growth: Part) -> None:
        self._broker, self._points, self._growth = broker, points, growth

    def load(self, workload: str, figure: str) -> str:
        return self._median(self._broker.get("load", ()), workload, figure)

    def point(self, workload: str, figure: str) -> str:
        return self._median(self._points.get("points", ()), workload, figure)

    def latency(self, figure: str) -> str:
        table = self._broker.get("latency", ())
        return self._median(table, "end to end, 100 records/s", figure)

    def disk(self, word: str) -> str:
        lines = [line for line in self._points.get("disk", ()) if word in line]
        return "; ".join(lines) or "not measured"

    def growth(self, axis: str, figure: str) -> str:
        points = [
            f"{each['size']:,} B {rounded(each['figures'][figure])}"
            for each in self._growth.get("points", ())
            if each["axis"] == axis and each["subject"] == "Penstock"
        ]
        return ", ".join(points) or "not measured"

    def _median(self, rows: Sequence[Mapping[str, Any]], workload: str, figure: str) -> str:
        for row in rows_of(rows):
            if (row.workload, row.figure) == (workload, figure):
                return rounded(row.median("Penstock"))
        return "not measured"
