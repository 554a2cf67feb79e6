"""Lines of input become records."""

import pytest

from penstock.client.produce import ProducerRecord
from penstock.errors import ConfigError
from penstock.record_view.record_input import record_reader
from penstock.record_view.record_json import BadLine


def read(form: str, *lines: bytes, **options: str) -> list[ProducerRecord]:
    reader = record_reader(form, "t", **options)  # type: ignore[arg-type]
    found = [reader.read(line, number) for number, line in enumerate(lines, 1)]
    reader.end(len(lines))
    return [each for each in found if each is not None]


def test_the_first_line_of_csv_names_the_columns() -> None:
    (first, second) = read(
        "csv",
        b"\xef\xbb\xbfkey,value,partition,timestamp,header.h\r",
        b'k,"a,""b""",2,2023-11-14T22:13:20Z,x\r',
        b",v,,17,",
    )
    assert first == ProducerRecord("t", b'a,"b"', b"k", [("h", b"x")], 2, 1_700_000_000_000)
    assert second == ProducerRecord("t", b"v", None, [("h", b"")], None, 17)


def test_csv_without_a_value_column_makes_an_object_of_the_other_columns() -> None:
    (record,) = read("csv", b"key,city,note", b'k,Rome,"two', b'lines"')
    assert record == ProducerRecord("t", b'{"city":"Rome","note":"two\\nlines"}', b"k", [])


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([b"a,b", b"1"], "line 2: 1 field, the header has 2"),
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
def test_an_error_names_the_broken_line_of_csv(lines: list[bytes], reason: str) -> None:
    with pytest.raises(BadLine, match=reason):
        read("csv", *lines)


def test_csv_supports_large_fields_and_keeps_every_character() -> None:
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
    with pytest.raises(BadLine, match="line 2: not JSON"):
        read("ndjson", line, b'{"a": "\xff"}')


def test_headers_are_a_list_or_an_object() -> None:
    listed = b'{"value":"v","headers":[{"key":"a","value":"b"},{"key":"n"}]}'
    named = b'{"value":"v","headers":{"a":"b","n":null}}'
    assert (
        read("json", listed, named)
        == [ProducerRecord("t", b"v", None, [("a", b"b"), ("n", None)])] * 2
    )
    with pytest.raises(BadLine, match=r"line 1: .* at `\$\.headers"):
        read("json", b'{"headers":{"a":1}}')


def test_a_template_reads_lines() -> None:
    assert read("%p %k=%s", b"1 a=b") == [ProducerRecord("t", b"b", b"a", (), 1)]
    assert read("%t %s", b"other v")[0].topic == "other"
    with pytest.raises(BadLine, match="line 2: it is not in the form '%k=%s'"):
        read("%k=%s", b"a=b", b"c")
    with pytest.raises(ConfigError):
        record_reader("%o", "t")


def test_an_error_names_a_json_line_that_is_too_deep() -> None:
    reader = record_reader("json", "t")
    with pytest.raises(BadLine, match="line 3"):
        reader.read(b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 3)


def test_csv_fields_keep_their_line_ends() -> None:
    reader = record_reader("csv", "t")
    lines = [b"value,key\r", b'"a\r', b'b",k\r']
    *_, found = (reader.read(line, number) for number, line in enumerate(lines, 1))
    assert found == ProducerRecord("t", b"a\r\nb", b"k", [], None, None)


def test_an_error_names_a_format_that_csv_does_not_know() -> None:
    reader = record_reader("csv", "t")
    reader.read(b"key,key_format,value,value_format", 1)
    with pytest.raises(BadLine, match="value_format 'avro'"):
        reader.read(b"k,text,x,avro", 2)
