"""docs/rows.md and the tests agree: each marker names an existing row that is built."""

import pytest
from scripts import rows
from scripts.rows import GROUPS, MarkerError, Row

PROMISED = rows.rows(rows.PAGE.read_text(encoding="utf-8"))
TESTS = rows.by_number(rows.all_markers())


def test_rows_are_numbered_without_a_gap() -> None:
    assert [row.number for row in PROMISED] == [f"A{n:03}" for n in range(1, len(PROMISED) + 1)]


def test_every_row_states_how_far_it_is_built() -> None:
    for row in PROMISED:
        assert row.built in GROUPS, row
        assert ("missing: " in row.text) == (row.built == "part"), row


def test_every_marker_names_a_row() -> None:
    assert TESTS.keys() <= {row.number for row in PROMISED}


def test_a_row_with_a_test_is_built() -> None:
    unfinished = {row.number for row in PROMISED if row.built != "yes"}
    assert {number: TESTS[number] for number in TESTS.keys() & unfinished} == {}


def test_a_malformed_row_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not a row: .* A1 "):
        rows.rows("| A1 | yes | x |")


SOURCE = """
import pytest

pytestmark = [pytest.mark.peer, pytest.mark.row("A001")]


@pytest.mark.row("A002", "A003")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.row("A004"))])
def test_one(x: int) -> None: ...
"""


def test_markers_are_found_wherever_pytest_takes_them() -> None:
    assert sorted(rows.markers(SOURCE, "tests/test_x.py")) == [
        ("A001", "tests/test_x.py"),
        ("A002", "tests/test_x.py::test_one"),
        ("A003", "tests/test_x.py::test_one"),
        ("A004", "tests/test_x.py"),
    ]


@pytest.mark.parametrize("marker", ["row()", "row(NUMBER)", 'row(number="A001")', "row(1)"])
def test_an_unreadable_marker_is_an_error(marker: str) -> None:
    with pytest.raises(MarkerError, match=r"tests/test_x\.py"):
        list(rows.markers(f"pytestmark = pytest.mark.{marker}", "tests/test_x.py"))


def test_rows_without_a_test_are_printed_by_how_far_they_are_built() -> None:
    promised = [Row("A001", "yes", "one"), Row("A002", "no", "two"), Row("A003", "yes", "three")]
    assert list(rows.untested(promised, {"A003": ["tests/test_x.py::test_one"]})) == [
        "Built, without a test (1):",
        "  A001  one",
        "",
        "Not built yet (1):",
        "  A002  two",
        "",
        "1 of 3 rows have a test.",
    ]
