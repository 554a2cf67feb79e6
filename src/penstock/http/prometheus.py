"""Metrics in Prometheus' text format 0.0.4: a table of metrics, rendered in slices.

Counters are plain numbers on the objects that count, so nothing here is on the hot path. A metric
is read when its line is rendered, and may yield its samples from a generator: ten thousand
partitions are then rendered in many slices, with requests served in between.
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
SLICE_LINES = 64
"""The clock is read once per this many lines, about every 50 µs."""


class MetricKind(Enum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    UNTYPED = "untyped"


class Sample(NamedTuple):
    """One line: a value and its labels; `suffix` may be `_bucket`, `_sum` or `_count`."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


Reading: TypeAlias = float | Iterable[Sample]


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table; `read` returns one number, or samples with labels."""

    kind: MetricKind
    help: str
    read: Callable[[], Reading]


def metrics(table: Mapping[str, Metric], clock: Clock | None = None) -> Handler:
    """The handler of `/metrics`."""
    ticking = clock or SystemClock()

    def handler(_: HttpRequest) -> HttpResponse:
        return HttpResponse(content_type=CONTENT_TYPE, body=slices(lines(table), ticking))

    return handler


def slices(rendered: Iterable[str], clock: Clock) -> Iterator[bytes]:
    """The lines in parts of about `SLICE_MS` rendering time each."""
    part: list[str] = []
    started_ms = clock.monotonic_ms()
    for count, line in enumerate(rendered, 1):
        part.append(line)
        if count % SLICE_LINES == 0 and clock.monotonic_ms() - started_ms >= SLICE_MS:
            yield "".join(part).encode()
            part.clear()
            started_ms = clock.monotonic_ms()
    yield "".join(part).encode()


def lines(table: Mapping[str, Metric]) -> Iterator[str]:
    for name, metric in table.items():
        yield f"# HELP {name} {_escaped_help(metric.help)}\n# TYPE {name} {metric.kind.value}\n"
        reading = metric.read()
        if isinstance(reading, (int, float)):
            yield f"{name} {_number(reading)}\n"
            continue
        for value, labels, suffix in reading:
            yield f"{name}{suffix}{_labels(labels)} {_number(value)}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, int):  # bool too
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
