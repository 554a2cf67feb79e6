"""Lines of input become records."""

import pytest

from penstock.cli.record_input import record_reader
from penstock.cli.record_json import BadLine
from penstock.client.produce import ProducerRecord
from penstock.errors import ConfigError


def read(form: str, *lines: bytes, **options: str) -> list[ProducerRecord]:
    reader = record_reader(form, "t", **options)  # type: ignore[arg-type]
    found = [reader.read(line, number) for number, line in enumerate(lines, 1)]
    reader.end(len(lines))
    return [each for each in found if each is not None]


def test_csv_has_its_columns_in_the_first_line() -> None:
    (first, second) = read(
        "csv",
        b"\xef\xbb\xbfkey,value,partition,timestamp,header.h\r",
        b'k,"a,""b""",2,2023-11-14T22:13:20Z,x\r',
        b",v,,17,",
    )
    assert first == ProducerRecord("t", b'a,"b"', b"k", [("h", b"x")], 2, 1_700_000_000_000)
    assert second == ProducerRecord("t", b"v", None, [("h", b"")], None, 17)


def test_csv_without_a_value_makes_an_object_of_the_others() -> None:
    (record,) = read("csv", b"key,city,note", b'k,Rome,"two', b'lines"')
    assert record == ProducerRecord("t", b'{"city":"Rome","note":"two\\nlines"}', b"k", [])


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([b"a,b", b"1"], "line 2: 1 fields, the header has 2"),
        ([b"a,a"], "line 1: a column has its name twice"),
        ([b"key,value,partition", b"k,v,x"], "line 2: invalid literal"),
        ([b"key,value,timestamp", b"k,v,soon"], "line 2: 'soon' is not a time"),
        ([b"a", b'"open'], "line 2: a quoted field does not end"),
        ([b"a", b"\xff"], "line 2: it is not UTF-8"),
        ([b"a", b"x\ry"], "line 2: new-line character"),
        ([b"value,timestamp_ms", b"v,99999999999999999999"], "line 2: 9+ is not a time"),
        ([b"value,timestamp", b"v,99999999999999999999"], "line 2: 9+ is not a time"),
    ],
)
def test_a_broken_line_of_csv_is_named(lines: list[bytes], reason: str) -> None:
    with pytest.raises(BadLine, match=reason):
        read("csv", *lines)


def test_csv_has_large_fields_and_keeps_every_character() -> None:
    large = b"x" * 200_000
    assert read("csv", b"value", large) == [ProducerRecord("t", large, None, [])]
    apart = "x\u2028y".encode()
    (record,) = read("csv", b"header.h,value", b'"two', b'lines",' + apart)
    assert record == ProducerRecord("t", apart, None, [("h", b"two\nlines")])


def test_a_quoted_field_of_many_lines_is_read_once() -> None:
    (record,) = read("csv", b"value", b'"', *[b"line"] * 100_000, b'"')
    assert record.value is not None
    assert len(record.value) == 500_002 - 1


def test_ndjson_lines_are_values_and_may_have_their_key_inside() -> None:
    line = b'{"user": {"id": 7, "name": "ann"}}'
    assert read("ndjson", line) == [ProducerRecord("t", line)]
    assert read("ndjson", line, key_field="user.id")[0].key == b"7"
    assert read("ndjson", line, key_field="user.name")[0].key == b"ann"
    with pytest.raises(BadLine, match=r"line 1: it has no field user\.other"):
        read("ndjson", line, key_field="user.other")
    with pytest.raises(BadLine, match="line 1: not JSON"):
        read("ndjson", b"{")


def test_a_template_reads_lines() -> None:
    assert read("%p %k=%s", b"1 a=b") == [ProducerRecord("t", b"b", b"a", (), 1)]
    assert read("%t %s", b"other v")[0].topic == "other"
    with pytest.raises(BadLine, match="line 2: it is not in the form '%k=%s'"):
        read("%k=%s", b"a=b", b"c")
    with pytest.raises(ConfigError):
        record_reader("%o", "t")
