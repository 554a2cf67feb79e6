"""The metrics page, parsed by a strict parser of the text format."""

import asyncio
import math
import re
from collections.abc import Iterator
from typing import TypeAlias

from penstock.http.prometheus import Metric, MetricKind, Sample, lines, metrics, slices
from penstock.http.server import serving

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
LINE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


Samples: TypeAlias = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> dict[str, tuple[str, str, Samples]]:
    """Type, help and samples of each metric; asserts every rule of the format."""
    assert text.endswith("\n")
    found: dict[str, tuple[str, str, Samples]] = {}
    family = ""
    rows = iter(text.removesuffix("\n").split("\n"))
    for row in rows:
        if row.startswith("# HELP "):
            _, _, family, words = row.split(" ", 3)
            assert re.fullmatch(NAME, family)
            assert family not in found, "a metric stands in one block"
            _, kind_word, name, kind = next(rows).split(" ")
            assert (kind_word, name) == ("TYPE", family)
            found[family] = (kind, unescaped(words), {})
            continue
        match = LINE.fullmatch(row)
        assert match, row
        name, labels, number = match.groups()
        kind, _, samples = found[family]
        assert name in {family + suffix for suffix in SUFFIXES.get(kind, ("",))}
        pairs = LABEL.findall(labels or "")
        assert ",".join(f'{key}="{value}"' for key, value in pairs) == (labels or "")
        key = name, frozenset((key, unescaped(value)) for key, value in pairs)
        assert key not in samples, "a sample stands once"
        samples[key] = float(number)
    return found


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), text)


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


class Counts:
    bytes_in = 12


COUNTS = Counts()
ODD = 'quote " back\\slash\nline'
TABLE = {
    "kafka_server_brokertopicmetrics_bytesin_total": Metric(
        MetricKind.COUNTER, "Bytes that producers sent.", lambda: COUNTS.bytes_in
    ),
    "kafka_log_log_size": Metric(
        MetricKind.GAUGE,
        "Size in bytes;\nof \\each partition",
        lambda: [Sample(1, {"topic": ODD, "partition": "0"}), Sample(2.5, {"topic": "größe"})],
    ),
    "latency_seconds": Metric(
        MetricKind.HISTOGRAM,
        "Latency.",
        lambda: [
            Sample(1, {"le": "0.1"}, "_bucket"),
            Sample(2, {"le": "+Inf"}, "_bucket"),
            Sample(0.3, suffix="_sum"),
            Sample(2, suffix="_count"),
        ],
    ),
    "no_sample": Metric(MetricKind.GAUGE, "Nothing yet.", list),
    "infinite": Metric(MetricKind.GAUGE, "No number.", lambda: -math.inf),
    "flag": Metric(MetricKind.GAUGE, "Yes or no.", lambda: True),
}


def test_the_page_parses_to_the_metrics_it_was_rendered_from() -> None:
    assert parsed("".join(lines(TABLE))) == {
        "kafka_server_brokertopicmetrics_bytesin_total": (
            "counter",
            "Bytes that producers sent.",
            {("kafka_server_brokertopicmetrics_bytesin_total", frozenset()): 12.0},
        ),
        "kafka_log_log_size": (
            "gauge",
            "Size in bytes;\nof \\each partition",
            {
                ("kafka_log_log_size", labelled(topic=ODD, partition="0")): 1.0,
                ("kafka_log_log_size", labelled(topic="größe")): 2.5,
            },
        ),
        "latency_seconds": (
            "histogram",
            "Latency.",
            {
                ("latency_seconds_bucket", labelled(le="0.1")): 1.0,
                ("latency_seconds_bucket", labelled(le="+Inf")): 2.0,
                ("latency_seconds_sum", frozenset()): 0.3,
                ("latency_seconds_count", frozenset()): 2.0,
            },
        ),
        "no_sample": ("gauge", "Nothing yet.", {}),
        "infinite": ("gauge", "No number.", {("infinite", frozenset()): -math.inf}),
        "flag": ("gauge", "Yes or no.", {("flag", frozenset()): 1.0}),
    }


class EachLineTakes:
    """A clock that advances with every rendered line."""

    def __init__(self, line_us: int) -> None:
        self.line_us, self.now_us = line_us, 0

    def now_ms(self) -> int:
        return self.now_us // 1000

    monotonic_ms = now_ms

    def lines(self, count: int) -> Iterator[str]:
        for number in range(count):
            self.now_us += self.line_us
            yield f"line {number}\n"


def test_a_slice_ends_after_its_time_is_up() -> None:
    clock = EachLineTakes(line_us=10)
    parts = list(slices(clock.lines(10_000), clock))
    assert b"".join(parts).count(b"\n") == 10_000
    assert max(part.count(b"\n") for part in parts) * clock.line_us <= 2_000
    assert len(parts) > 50


def test_a_metric_is_not_read_before_its_line_is_rendered() -> None:
    asked = []

    def samples() -> Iterator[Sample]:
        for number in range(3):
            asked.append(number)
            yield Sample(number, {"n": str(number)})

    rendered = lines({"lazy": Metric(MetricKind.GAUGE, "Lazy.", samples)})
    next(rendered)
    assert asked == []
    next(rendered)
    assert asked == [0]


def test_the_loop_keeps_running_while_ten_thousand_partitions_are_rendered() -> None:
    def partitions() -> Iterator[Sample]:
        for number in range(10_000):
            yield Sample(number, {"topic": f"topic-{number // 10}", "partition": str(number % 10)})

    table = {"kafka_topic_partition_current_offset": Metric(MetricKind.GAUGE, "End.", partitions)}

    async def main() -> tuple[str, int]:
        turns = 0
        routes = {("GET", "/metrics"): metrics(table)}
        async with asyncio.TaskGroup() as group, serving(group, routes) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            page = group.create_task(reader.read())
            while not page.done():
                turns += 1
                await asyncio.sleep(0)
            writer.close()
        return page.result().decode(), turns

    answer, turns = asyncio.run(main())
    head, body = answer.split("\r\n\r\n", 1)
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert len(parsed(body)["kafka_topic_partition_current_offset"][2]) == 10_000
    assert turns > 5
