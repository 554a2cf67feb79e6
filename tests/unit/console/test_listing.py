"""Which rows a page of a long list shows."""

import pytest
from msgspec import Struct

from penstock.console.history import KEPT, Lag, LagHistory, Point
from penstock.console.listing import ROWS, picked
from penstock.errors import ConfigError


class Row(Struct, frozen=True):
    """One row of a list."""

    name: str
    lag: int
    since: int | None = None


EVERY = [Row(f"t{number:04}", number, number or None) for number in range(250)]


def names(**given: str) -> list[str]:
    return [each.name for each in picked(EVERY, given, "name").rows]


def test_a_page_has_a_hundred_rows() -> None:
    first = picked(EVERY, {}, "name")
    assert (first.total, first.page, first.pages, len(first.rows)) == (250, 1, 3, ROWS)
    assert names(page="3")[0] == "t0200"
    assert len(names(page="3")) == 50
    assert names(page="99") == names(page="3"), "it was longer when the link was made"
    assert len(picked(EVERY, {}, "name", all_pages=True).rows) == 250
    assert len(picked(EVERY, {"page": "3"}, "name", all_pages=True).rows) == 50


def test_rows_are_sorted_by_any_column_and_unknown_values_come_last() -> None:
    assert names(sort="-lag")[:2] == ["t0249", "t0248"]
    assert names(sort="since", page="3")[-1] == "t0000"
    assert names(sort="-since", page="3")[-1] == "t0000"
    assert names(match="T02", sort="-name")[0] == "t0249"
    with pytest.raises(ConfigError, match="sort: 'x' is not one of name, lag, since"):
        names(sort="x")
    with pytest.raises(ConfigError, match="page"):
        names(page="-1")


def test_links_keep_the_search_and_reverse_the_order() -> None:
    found = picked(EVERY, {"match": "a&b", "sort": "-lag"}, "name")
    assert found.sorting("lag") == "?match=a%26b&sort=lag"
    assert found.sorting("name") == "?match=a%26b&sort=name"
    assert found.link(page=2) == "?match=a%26b&sort=-lag&page=2"
    assert (found.direction("lag"), found.direction("name")) == ("descending", "none")
    assert picked(EVERY, {}, "name").sorting("name") == "?sort=-name"


def test_the_history_of_lag_is_bounded_and_forgets_deleted_groups() -> None:
    history = LagHistory()
    history.add(1_000, [Lag("g", 5, None), Lag("idle", 0, 0.0)])
    history.add(2_000, [Lag("g", 7, 2.5), Lag("idle", 0, 0.0)])
    assert history.records("g") == [Point(1_000, 5), Point(2_000, 7)]
    assert history.seconds("g") == [Point(1_000, None), Point(2_000, 2.5)]
    assert history.records("idle") == [Point(2_000, 0.0)]
    for look in range(KEPT + 10):
        history.add(look, [Lag("g", look, 1.0)])
    assert len(history.records("g")) == KEPT
    assert history.records("g")[-1] == Point(KEPT + 9, KEPT + 9)
    history.add(9, [])
    assert history.records("g") == [Point(9, 0.0)]
