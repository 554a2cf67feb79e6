"""Client metrics in OpenTelemetry's format, spelled out byte by byte."""

from struct import pack

import pytest

from penstock.broker.telemetry.otlp import DataPoint, InvalidMetrics, data_points


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 16384
    size = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])
    return bytes([number << 3 | 2]) + size + data


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
