"""Client metrics in OpenTelemetry's format, spelled out byte by byte."""

from struct import pack

import pytest

from penstock.broker.telemetry.otlp import (
    MAX_ATTRIBUTES,
    MAX_CHARS,
    DataPoint,
    InvalidMetrics,
    data_points,
)
from penstock.wire.primitives import uvarint_bytes


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + uvarint_bytes(len(data)) + data


def attribute(key: str, value: bytes) -> bytes:
    return field(7, field(1, key.encode()) + field(2, value))


def pushed(*metrics: bytes) -> memoryview:
    return memoryview(field(1, field(2, b"".join(field(2, each) for each in metrics))))


GAUGE = field(1, b"org.apache.kafka.x") + field(
    5, field(1, b"\x21" + pack("<d", 2.5) + attribute("topic", field(1, b"t")))
)
SUM = field(1, b"y.total") + field(
    7, field(1, b"\x31" + pack("<q", -7) + attribute("n", b"\x18\x05")) + b"\x10\x01\x18\x01"
)


def test_gauges_and_sums_are_read_with_their_attributes() -> None:
    assert data_points(pushed(GAUGE, SUM), 10) == [
        DataPoint("org.apache.kafka.x", (("topic", "t"),), 2.5, is_counter=False, is_delta=False),
        DataPoint("y.total", (("n", "5"),), -7, is_counter=True, is_delta=True),
    ]


def test_no_more_points_are_read_than_allowed() -> None:
    assert len(data_points(pushed(*[GAUGE] * 5), 3)) == 3


def test_many_attributes_and_long_texts_are_cut() -> None:
    """The event loop sorts and renders them: a megabyte would stop it for half a second."""
    long = b"x" * 15_000
    many = b"".join(attribute(str(n), field(1, b"v")) for n in range(1000))
    point = b"\x21" + pack("<d", 2.5)
    for data in (
        field(1, long) + field(5, field(1, point)),
        field(1, b"n") + field(5, field(1, point + attribute(long.decode(), field(1, b"v")))),
        field(1, b"n") + field(5, field(1, point + attribute("k", field(1, long[:-100])))),
        field(1, b"n") + field(5, field(1, point + many)),
    ):
        (found,) = data_points(pushed(data), 10)
        assert len(found.attributes) <= MAX_ATTRIBUTES
        texts = [found.name, *(text for pair in found.attributes for text in pair)]
        assert max(map(len, texts)) <= MAX_CHARS


def test_no_more_points_of_one_metric_are_read_than_allowed() -> None:
    points = b"".join(field(1, b"\x21" + pack("<d", n)) for n in range(1000))
    found = data_points(pushed(field(1, b"n") + field(5, points) + field(7, points)), 3)
    assert [each.value for each in found] == [0, 1, 2]


def test_unknown_fields_are_skipped() -> None:
    histogram = field(1, b"h") + field(9, b"\x08\x01")
    assert data_points(pushed(histogram, b"\x7d1234" + GAUGE), 10)[0].value == 2.5
    assert data_points(memoryview(b""), 10) == []


@pytest.mark.parametrize(
    "data", [b"\x0a\x05ab", b"\x0b", b"\x80" * 11, b"\x0a\x80", bytes(pushed(b"\x0a\x01\xff"))]
)
def test_bytes_that_are_not_protobuf_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidMetrics):
        data_points(memoryview(data), 10)
