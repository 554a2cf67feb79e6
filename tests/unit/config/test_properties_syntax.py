"""The syntax of Java's properties files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.properties import Property, properties
from penstock.errors import ConfigError


def read(text: str) -> dict[str, str]:
    return {each.key: each.value for each in properties(text)}


def test_a_key_ends_at_equals_colon_or_blank() -> None:
    assert read("a=1\nb : 2\nc 3\nd\n\te = f=g") == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "f=g",
    }


def test_comments_and_blank_lines_are_skipped() -> None:
    assert read("# a=1 \\\n\n  ! b=2\nc=3 # kept") == {"c": "3 # kept"}


def test_a_backslash_at_the_end_continues_the_line() -> None:
    assert read("log.dirs=/a,\\\n    /b\nnext=1") == {"log.dirs": "/a,/b", "next": "1"}


def test_two_backslashes_at_the_end_do_not_continue_the_line() -> None:
    assert read("a=x\\\\\nb=y") == {"a": "x\\", "b": "y"}


def test_escapes_stand_for_their_characters() -> None:
    assert read(r"a\ b\=c=\t\u00e9\ud83d\ude00\z") == {"a b=c": "\té😀z"}


def test_each_property_knows_the_line_it_starts_on() -> None:
    text = "\n# x\na=1\\\n2\\\n3\nb=4\n"
    assert list(properties(text)) == [Property("a", "123", 3), Property("b", "4", 6)]


def test_a_broken_unicode_escape_is_rejected_with_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        list(properties("a=1\nb=\\u12"))


def escaped(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in utf16_units(text))


def utf16_units(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_escaped_pairs_survive_a_round_trip(pairs: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs.items())
    assert read(text) == pairs
