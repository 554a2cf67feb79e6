"""YAML of commands, read back by a library."""

from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.frame.yaml_text import yaml_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    text = yaml_text(value)
    if all(each.isprintable() or each == "\n" for each in text):  # JSON may hold other characters
        assert yaml.safe_load(text) == value


@pytest.mark.parametrize("word", ["yes", "NO", "null", "1", "1.5", "a: b", "# x", "", "2026-01-01"])
def test_a_text_stays_a_text(word: str) -> None:
    assert yaml.safe_load(yaml_text({word: word})) == {word: word}


def test_it_is_as_people_write_it() -> None:
    row = {"name": "events", "partitions": [{"partition": 0, "isr": [1, 2]}], "configs": []}
    assert yaml_text(row) == (
        "name: events\npartitions:\n  - partition: 0\n    isr:\n      - 1\n      - 2\nconfigs: []\n"
    )
