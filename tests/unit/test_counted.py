"""A noun agrees with its number."""

import pytest

from penstock.counted import counted


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (21, "21 records")]
)
def test_only_one_is_singular(count: int, text: str) -> None:
    assert counted(count, "record") == text


def test_a_verb_agrees_with_the_number() -> None:
    assert counted(1, "partition has", "partitions have") == "1 partition has"
    assert counted(3, "partition has", "partitions have") == "3 partitions have"
