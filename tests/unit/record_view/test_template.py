"""Percent templates for output and input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.template import NoMatch, printing, reading
from penstock.types import TopicPartition

PLACE = TopicPartition("t", 3)
RECORD = Record(7, 1_700_000_000_123, b"k", b"v\xff", [("a", b"1"), ("b", None)])
NOTHING = Record(8, -1, None, None, [])


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        (r"%k:%s\n", b"k:v\xff\n"),
        (r"%t-%p@%o\t%T", b"t-3@7\t1700000000123"),
        ("%T{iso}", b"2023-11-14T22:13:20.123Z"),
        ("%K %S %V %%", b"1 2 2 %"),
        ("%R", b"\0\0\0\2"),
        ("%h", b"a=1,b="),
        ("%h{%k: %v;}", b"a: 1;b: ;"),
        ("%k{hex} %v{base64} %k{json}", b'6b dv8= "k"'),
        (r"%v\x00\\", b"v\xff\0\\"),
        ("%v%d", b"v\xff1700000000123"),
    ],
)
def test_a_record_is_printed(template: str, printed: bytes) -> None:
    assert printing(template)(PLACE, RECORD) == printed


def test_a_missing_field_is_empty_and_has_length_minus_one() -> None:
    assert printing("%k|%s|%K|%S|%h|%T{iso}|%v{json}")(PLACE, NOTHING) == b"||-1|-1||-|null"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("%z", "%z is unknown"),
        ("100%", "a lone % is written %%"),
        ("%k{rot13}", "in braces may be base64, hex, json"),
        ("%o{hex}", "has no {hex}"),
        ("%h{%k %p}", "%k and %v are"),
    ],
)
def test_a_wrong_template_is_refused(template: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        printing(template)
    assert reason in str(caught.value)


def test_a_line_is_read() -> None:
    fields = reading(r"%t %p %T %k:%s|%h\n")(b"u 2 99 a:b:c|x=1,y=")
    assert (fields.topic, fields.partition, fields.timestamp_ms) == ("u", 2, 99)
    assert (fields.key, fields.value) == (b"a", b"b:c")
    assert fields.headers == (("x", b"1"), ("y", b""))
    assert reading("%s{hex}")(b"00ff").value == b"\0\xff"


@pytest.mark.parametrize(
    ("template", "line"),
    [("%k:%s", b"no colon"), ("%p %s", b"x v"), ("%s{hex}", b"zz"), ("%s %h", b"v nothing")],
)
def test_a_line_that_does_not_match_is_refused(template: str, line: bytes) -> None:
    with pytest.raises(NoMatch):
        reading(template)(line)


@pytest.mark.parametrize("template", ["%o", "%s %s", "no verb", "%S"])
def test_a_template_that_cannot_be_used_for_input_is_refused(template: str) -> None:
    with pytest.raises(ConfigError):
        reading(template)


@given(st.binary(), st.binary())
def test_printed_hex_and_base64_are_read_back(key: bytes, value: bytes) -> None:
    form = "%k{hex}:%s{base64}"
    line = printing(form)(PLACE, Record(0, 0, key, value, []))
    fields = reading(form)(line)
    assert (fields.key, fields.value) == (key, value)
