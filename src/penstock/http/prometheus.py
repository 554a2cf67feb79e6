"""Metrics in Prometheus' text format 0.0.4: a table of metrics, rendered in slices.

Counters are plain numbers on the objects that count, so nothing here is on the hot path. A metric
is read when its line is rendered, and may yield its samples from a generator: ten thousand
partitions are then rendered in many slices, with requests served in between. The table is created
for each page, so that its metrics can share intermediate results.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from penstock.clock import Clock, SystemClock
from penstock.http.message import HttpRequest, HttpResponse
from penstock.http.server import Handler

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SLICE_MS = 1
SLICE_LINES = 16
"""The clock is read once per this many lines, and before each metric, because even one line may be
a sum over all partitions.
"""
HELP = "# HELP "


class MetricKind(Enum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    UNTYPED = "untyped"


class Sample(NamedTuple):
    """One line: a value and its labels, as rendered by `labels`; `suffix` may be `_bucket`,
    `_sum` or `_count`.
    """

    value: float
    labels: str = ""
    suffix: str = ""


Reading: TypeAlias = float | Iterable[Sample]
Table: TypeAlias = Mapping[str, "Metric"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table; `read` returns one number, or labelled samples."""

    kind: MetricKind
    help: str
    read: Callable[[], Reading]


def counter(text: str, read: Callable[[], Reading]) -> Metric:
    return Metric(MetricKind.COUNTER, text, read)


def gauge(text: str, read: Callable[[], Reading]) -> Metric:
    return Metric(MetricKind.GAUGE, text, read)


def metrics(table: Callable[[], Table], clock: Clock | None = None) -> Handler:
    """The handler of `/metrics`."""
    ticking = clock or SystemClock()

    def handler(_: HttpRequest) -> HttpResponse:
        return HttpResponse(content_type=CONTENT_TYPE, body=slices(lines(table()), ticking))

    return handler


def slices(rendered: Iterable[str], clock: Clock) -> Iterator[bytes]:
    """The lines in parts of about `SLICE_MS` rendering time each."""
    part: list[str] = []
    started_ms = clock.monotonic_ms()
    for line in rendered:
        part.append(line)
        is_time_to_look = not len(part) % SLICE_LINES or line.startswith(HELP)
        if is_time_to_look and clock.monotonic_ms() - started_ms >= SLICE_MS:
            yield "".join(part).encode()
            part.clear()
            started_ms = clock.monotonic_ms()
    yield "".join(part).encode()


def lines(table: Table) -> Iterator[str]:
    for name, metric in table.items():
        yield f"{HELP}{name} {_escaped_help(metric.help)}\n# TYPE {name} {metric.kind.value}\n"
        reading = metric.read()
        if isinstance(reading, (int, float)):
            yield f"{name} {_number(reading)}\n"
            continue
        for value, labelled, suffix in reading:
            number = value if type(value) is int else _number(value)  # most values are ints
            yield f"{name}{suffix}{labelled} {number}\n"


def labels(**values: str) -> str:
    """Rendered labels. Render them once and reuse them if there are thousands of samples."""
    return "{" + ",".join([f'{name}="{_escaped(value)}"' for name, value in values.items()]) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, int):  # includes bool
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
