"""Filters, sorts and pages long lists. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from penstock.errors import ConfigError

ROWS: Final = 100
OPTIONS: Final = ("match", "sort", "page")
WORDS: Final = {"name", "id", "state", "type"}

T = TypeVar("T", bound=Struct)


class Rows(Struct, Generic[T], frozen=True):
    """The rows of one page, numbered from 1; `total` counts the rows of all pages."""

    rows: list[T]
    total: int
    page: int
    pages: int
    match: str
    sort: str

    def link(self, **changed: object) -> str:
        """The query string of this list with some parameters changed."""
        given = {"match": self.match, "sort": self.sort, "page": self.page, **changed}
        return "?" + urlencode({name: value for name, value in given.items() if value})

    def sorting(self, column: str) -> str:
        """The link that sorts by a column: names ascending and numbers descending
        first, then reversed.
        """
        first = column if column in WORDS else f"-{column}"
        other = f"-{column}" if column in WORDS else column
        return self.link(sort=other if self.sort == first else first, page=0)

    def direction(self, column: str) -> str:
        """The value of `aria-sort`."""
        if self.sort.removeprefix("-") != column:
            return "none"
        return "descending" if self.sort.startswith("-") else "ascending"


def picked(
    rows: Sequence[T], given: Mapping[str, str], name: str, *, all_pages: bool = False
) -> Rows[T]:
    """The rows whose field `name` contains `match`, sorted by `sort` (`-lag`: greatest first).

    `all_pages`: return all rows if no page is requested.
    """
    match, sort = given.get("match", ""), given.get("sort", "") or name
    column = sort.removeprefix("-")
    found = [each for each in rows if match.lower() in getattr(each, name).lower()]
    if rows and column not in rows[0].__struct_fields__:
        raise ConfigError(f"sort: {column!r} is not one of {', '.join(rows[0].__struct_fields__)}")

    def key(each: Any) -> Any:
        value = getattr(each, column)
        return value.lower() if isinstance(value, str) else value

    known = [each for each in found if getattr(each, column) is not None]
    unknown = [each for each in found if getattr(each, column) is None]
    ordered = sorted(known, key=key, reverse=sort.startswith("-")) + unknown
    pages = max(-(-len(ordered) // ROWS), 1)
    text = given.get("page", "")
    if text and not (text.isascii() and text.isdigit()):
        raise ConfigError(f"page: {text!r} is not a number")
    if all_pages and not text:
        return Rows(ordered, len(ordered), 1, 1, match, sort)
    page = min(max(int(text[:9] or 1), 1), pages)
    return Rows(ordered[(page - 1) * ROWS : page * ROWS], len(ordered), page, pages, match, sort)
