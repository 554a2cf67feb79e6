"""YAML of commands, read back by a library."""

from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.frame.yaml_text import yaml_text

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(VALUES)
def test_a_written_value_is_read_back(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


@pytest.mark.parametrize(
    "text", ["\x7f", "a\x85b", "\x9f", "\u2028", "\ufeff", "\uffff", "k" * 2000]
)
def test_texts_that_need_quotes_are_read_back(text: str) -> None:
    value = [{text: {text: text}}]
    assert yaml.safe_load(yaml_text(value)) == value


@pytest.mark.parametrize("number", [1e16, 1e-5, -2.5e22, 1.5, 0.0])
def test_a_number_stays_a_number(number: float) -> None:
    assert yaml.safe_load(yaml_text(number)) == number


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_null_as_in_json(number: float) -> None:
    assert yaml_text({"x": number}) == "x: null\n"


@pytest.mark.parametrize("word", ["yes", "NO", "null", "1", "1.5", "a: b", "# x", "", "2026-01-01"])
def test_a_text_stays_a_text(word: str) -> None:
    assert yaml.safe_load(yaml_text({word: word})) == {word: word}


def test_yaml_is_formatted_as_people_write_it() -> None:
    row = {"name": "events", "partitions": [{"partition": 0, "isr": [1, 2]}], "configs": []}
    assert yaml_text(row) == (
        "name: events\npartitions:\n  - partition: 0\n    isr:\n      - 1\n      - 2\nconfigs: []\n"
    )
