"""Reads the values in OpenTelemetry's `MetricsData`, as clients push it (KIP-714).

Protobuf is a sequence of tagged fields, and only a dozen of them matter here: gauges and sums with
their attributes. Histograms and unknown fields are skipped, as are data points and attributes past
a limit, and the ends of long texts.
"""

from collections.abc import Iterator
from itertools import islice
from struct import Struct

import msgspec

from penstock.errors import ErrorCode, KafkaError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DOUBLE, INT64 = Struct("<d"), Struct("<q")
DELTA = 1
"""The `AggregationTemporality` of a sum since the last push."""
NAME, GAUGE, SUM = 1, 5, 7
"""Fields of `Metric`."""
AS_DOUBLE, AS_INT, ATTRIBUTES = 4, 6, 7
"""Fields of `NumberDataPoint`."""
MAX_ATTRIBUTES = 64
"""Attributes of a data point that are read. Clients have a few; the loop sorts them."""
MAX_CHARS = 1024
"""Characters of a name or a value that are read."""


class InvalidMetrics(KafkaError):
    """A push that is not a valid `MetricsData`."""

    code = ErrorCode.INVALID_RECORD


class DataPoint(msgspec.Struct, frozen=True):
    """One value of a client."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    is_delta: bool


def data_points(data: memoryview, limit: int) -> list[DataPoint]:
    """The values, at most `limit` of them."""
    found: list[DataPoint] = []
    try:
        for metric in _metrics(data):
            for point in _points(metric, limit):
                if len(found) == limit:
                    return found
                found.append(point)
    except (IndexError, ValueError) as error:
        raise InvalidMetrics(f"metrics of a client cannot be read: {error}") from None
    return found


def _metrics(data: memoryview) -> Iterator[memoryview]:
    for resource in _messages(data, 1):
        for scope in _messages(resource, 2):
            yield from _messages(scope, 2)


def _points(metric: memoryview, limit: int) -> Iterator[DataPoint]:
    name, is_counter, is_delta = "", False, False
    numbers: list[memoryview] = []
    for number, value in fields(metric):
        if isinstance(value, int):
            continue
        if number == NAME:
            name = _string(value)
        elif number in {GAUGE, SUM}:
            numbers += islice(_messages(value, 1), limit - len(numbers))
            if number == SUM:
                traits = {at: each for at, each in fields(value) if isinstance(each, int)}
                is_delta, is_counter = traits.get(2) == DELTA, bool(traits.get(3))
    for point in numbers:
        read = _number(point)
        if read is not None:
            yield DataPoint(name, _attributes(point), read, is_counter, is_delta)


def _number(point: memoryview) -> float | None:
    for number, value in fields(point):
        if number in {AS_DOUBLE, AS_INT} and isinstance(value, memoryview) and len(value) == 8:
            read = DOUBLE if number == AS_DOUBLE else INT64
            (found,) = read.unpack(value)
            return float(found)
    return None


def _attributes(point: memoryview) -> tuple[tuple[str, str], ...]:
    found = []
    for pair in islice(_messages(point, ATTRIBUTES), MAX_ATTRIBUTES):
        key, text = "", ""
        for number, value in fields(pair):
            if isinstance(value, int):
                continue
            if number == 1:
                key = _string(value)
            elif number == 2:
                text = _text(value)
        found.append((key, text))
    return tuple(found)


def _text(value: memoryview) -> str:
    """The text of an `AnyValue`; empty for a nested one."""
    for number, each in fields(value):
        match number:
            case 1 if not isinstance(each, int):
                return _string(each)
            case 2:
                return "true" if each else "false"
            case 3 if isinstance(each, int):
                return str(each - (1 << 64) if each >> 63 else each)
            case 4 if not isinstance(each, int) and len(each) == 8:
                return str(DOUBLE.unpack(each)[0])
    return ""


def _string(value: memoryview) -> str:
    return str(value, "utf-8")[:MAX_CHARS]


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in fields(data):
        if number == wanted and not isinstance(value, int):
            yield value


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Field numbers with their values: varints, or bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind in {FIXED64, FIXED32}:
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"no field begins with {tag}")
        if size > end - at:
            raise ValueError(f"a field of {size} bytes is cut short")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
