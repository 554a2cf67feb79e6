"""Formats are recognised, null differs from empty, long values are cut, forms keep bytes."""

import csv
from urllib.parse import urlencode

import pytest

from penstock.console.body import LARGEST
from penstock.console.messages.decoding import Decoder
from penstock.console.messages.export import FORMATS, csv_lines
from penstock.console.messages.pages import RESENT_BYTES, editable, resend_form
from penstock.console.messages.produce import NewMessage, encoded, lines_of, record_of
from penstock.console.messages.search import Hit
from penstock.console.messages.view import Part, message, part, shown
from penstock.errors import ConfigError
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.record_view.decoded import Decoded, Undecodable
from penstock.record_view.registry import RegistryFailed, SchemaRegistry
from penstock.testing.clock import ManualClock

DECODE = Decoder(None, ManualClock())


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (None, Part("null", -1, None)),
        (b"", Part("empty", 0, "")),
        (b'{"a": [1]}', Part("json", 10, {"a": [1]})),
        (b"plain", Part("text", 5, "plain")),
        (b"<a/>", Part("xml", 4, "<a/>")),
        (b"<a>", Part("text", 3, "<a>")),
        (b"\x81\xa1a\x01", Part("msgpack", 4, {"a": 1})),
        (b"\xff\x00", Part("hex", 2, "ff00")),
    ],
)
def test_a_format_is_recognised(data: bytes | None, wanted: Part) -> None:
    assert part(data, DECODE) == wanted


def test_xml_that_declares_entities_is_only_text() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>'
    assert part(bomb, DECODE).format == "text"


def test_a_long_value_is_cut_unless_all_of_it_is_requested() -> None:
    found = part(b"x" * 9000, DECODE)
    assert (found.is_cut, found.size_bytes, found.value) == (True, 9000, "x" * 4096)
    assert part(b"x" * 9000, DECODE, None) == Part("text", 9000, "x" * 9000)


def test_a_deep_value_is_shown_with_little_indentation() -> None:
    deep = b"[" + b",".join([b"[" * 190 + b"]" * 190] * 100) + b"]"
    found = part(deep, DECODE, None)
    assert found.format == "json"
    assert len(shown(found.value)) < 10 * len(deep)
    assert shown({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


@pytest.mark.parametrize("levels", [300, 900, 980, 2000])
def test_json_too_deep_for_the_page_is_text(levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    assert part(deep, DECODE, None).format == "text"


class FailingRegistry(SchemaRegistry):
    """Unreachable at first; then has a schema by which only `abc` can be decoded."""

    asked, is_away = 0, True

    def decode(self, data: bytes) -> Decoded:
        self.asked += 1
        if self.is_away:
            raise RegistryFailed(f"no schema for {data!r}")
        if not data.endswith(b"abc"):
            raise Undecodable("not whole")
        return Decoded("avro", "abc")


def test_an_unknown_schema_is_looked_up_again_only_after_a_while() -> None:
    registry, clock = FailingRegistry("http://127.0.0.1:1"), ManualClock()
    decode = Decoder(registry, clock)
    for _ in range(3):
        assert decode(b"\x00\x00\x00\x00\x07abc").format == "hex"
    assert registry.asked == 1
    registry.is_away = False
    clock.advance(30_000)
    assert decode(b"\x00\x00\x00\x00\x07abc").format == "avro"


def test_a_broken_record_does_not_affect_others_of_its_schema() -> None:
    registry = FailingRegistry("http://127.0.0.1:1")
    registry.is_away = False
    decode = Decoder(registry, ManualClock())
    assert decode(b"\x00\x00\x00\x00\x07ab").format == "hex"
    assert decode(b"\x00\x00\x00\x00\x07abc").format == "avro"


def test_header_names_that_are_not_text_are_shown_with_replacements() -> None:
    record = Record(0, 0, None, None, [("\udcff", b"\xff")])
    found = message("t", 0, record, DECODE)
    assert (found.headers[0].name, found.headers[0].part.value) == ("\ufffd", "ff")
    header = read_header(build_batch([Record(0, 0, None, b"", [])]))
    line = csv_lines("t", [Hit(0, record, header)]).decode()
    assert line.startswith("t,0,0,0,1970-01-01T00:00:00.000Z,,null,,null,")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (b"=1+1", "'=1+1"),
        (b"@SUM(A1)", "'@SUM(A1)"),
        (b"-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        (b"\t=1", "'\t=1"),
        (b"-1.5e3", "-1.5e3"),
        (b"+1", "+1"),
        (b"a=1", "a=1"),
    ],
)
def test_a_spreadsheet_does_not_treat_a_record_as_a_formula(value: bytes, cell: str) -> None:
    record = Record(0, 0, value, value, [])
    header = read_header(build_batch([Record(0, 0, None, b"", [])]))
    (row,) = csv.reader([csv_lines("t", [Hit(0, record, header)]).decode()])
    assert (row[5], row[7]) == (cell, cell)


@pytest.mark.parametrize(
    "data", [None, b"", b"\xff\x00", b"=1", b"'=1", b"'", b"-1", b"a\r\nb\n", b'"', b"00ff"]
)
def test_exported_csv_is_imported_unchanged(data: bytes | None) -> None:
    record = Record(0, 5, data, data, [("h", data), ("h", b"x")])
    header = read_header(build_batch([Record(0, 0, None, b"", [])]))
    _, first, write = FORMATS["csv"]
    (found,) = lines_of("t", "csv", first + write("t", [Hit(3, record, header)]))
    assert (found.key, found.value, list(found.headers)) == (data, data, record.headers)
    assert (found.partition, found.timestamp) == (3, 5)


@pytest.mark.parametrize("data", [None, b"", b"text\nlines", b"a\r\nb", b"\xff\x00", b"nul\x00"])
def test_a_resend_form_reproduces_the_record(data: bytes | None) -> None:
    text, encoding = editable(data)
    given = NewMessage("t", value=text or None, value_encoding=encoding)  # type: ignore[arg-type]
    assert record_of(given).value == data


@pytest.mark.parametrize(
    "header",
    [
        ("plain", b"x: y"),
        ("null", None),
        ("empty", b""),
        ("spaces", b" x "),
        ("lines", b"a\nb: c\r\n"),
        ("separator", "a\u2028b".encode()),
        ("bytes", b"\xff\x00"),
        ("a:b", b"x"),
        (" a ", b"x"),
        ("", b"x"),
        ('{"key": "a"}', b"x"),
    ],
)
def test_headers_are_resent_unchanged(header: tuple[str, bytes | None]) -> None:
    fields = resend_form(Record(0, 0, None, None, [header, ("z", b"1")]))
    assert fields is not None
    lines = fields["header_lines"]
    assert record_of(NewMessage("t", header_lines=lines)).headers == [header, ("z", b"1")]


def test_a_form_that_browsers_cannot_show_or_send_is_not_offered() -> None:
    """A form may send a megabyte, and most characters frequent in JSON take three bytes."""
    value = b'"' * RESENT_BYTES
    fields = resend_form(Record(0, 0, None, value, []))
    assert fields is not None
    assert len(urlencode(fields)) < LARGEST
    assert resend_form(Record(0, 0, b"k", value, [])) is None
    assert resend_form(Record(0, 0, None, None, [("h", value), ("i", b"1")])) is None


def test_a_wrong_header_in_json_is_named() -> None:
    with pytest.raises(ConfigError, match="header_lines"):
        record_of(NewMessage("t", header_lines='{"key": "a", "value_base64": "?"}'))


def test_a_new_message_distinguishes_null_from_empty() -> None:
    assert encoded("value", None, None) is None
    assert encoded("value", "x", "null") is None
    assert encoded("value", None, "text") == b""
    assert encoded("value", "AAE=", "base64") == b"\x00\x01"
    with pytest.raises(ConfigError, match="key is not hex"):
        encoded("key", "xyz", "hex")
    lines = NewMessage("t", header_lines="a: 1\n\nb:\nc: x: y")
    assert record_of(lines).headers == [("a", b"1"), ("b", b""), ("c", b"x: y")]
    with pytest.raises(ConfigError, match="is not NAME: VALUE"):
        record_of(NewMessage("t", header_lines="a"))
