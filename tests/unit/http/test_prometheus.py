"""The metrics page, parsed by a strict parser of the text format."""

import math
from collections.abc import Iterator

from penstock.http.prometheus import Metric, MetricKind, Sample, labels, lines, slices
from support.metrics_page import parsed


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
        lambda: [Sample(1, labels(topic=ODD, partition="0")), Sample(2.5, labels(topic="größe"))],
    ),
    "latency_seconds": Metric(
        MetricKind.HISTOGRAM,
        "Latency.",
        lambda: [
            Sample(1, labels(le="0.1"), "_bucket"),
            Sample(2, labels(le="+Inf"), "_bucket"),
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


def test_slow_metrics_of_one_line_each_are_slices_of_their_own() -> None:
    clock = EachLineTakes(line_us=0)

    def slow() -> int:
        clock.now_us += 2000
        return 1

    table = {f"sum_{number}": Metric(MetricKind.GAUGE, "Slow.", slow) for number in range(5)}
    assert len(list(slices(lines(table), clock))) == 5


def test_a_metric_is_not_read_before_its_line_is_rendered() -> None:
    asked = []

    def samples() -> Iterator[Sample]:
        for number in range(3):
            asked.append(number)
            yield Sample(number, labels(n=str(number)))

    rendered = lines({"lazy": Metric(MetricKind.GAUGE, "Lazy.", samples)})
    next(rendered)
    assert asked == []
    next(rendered)
    assert asked == [0]
