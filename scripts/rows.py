"""Print the rows of docs/rows.md that have no test; with --tests, every row with its tests.

Markers are read from the tests' source: collecting all tests would take half a minute.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "rows.md"
TESTS = ROOT / "tests"

GROUPS = {
    "yes": "Built, without a test",
    "part": "Built in part",
    "no": "Not built yet",
}
"""Values of the column `Built`, and the headings for their rows without a test."""

_ROW = re.compile(r"\| (?P<number>A\d{3}) \| (?P<built>\w+) \| (?P<text>[^|]+) \|")


class Row(NamedTuple):
    """A promise, by its number."""

    number: str
    built: str
    text: str


class Marked(NamedTuple):
    """A test, or a whole test file, that claims a row."""

    number: str
    test: str


class MarkerError(Exception):
    """A marker's rows cannot be read."""


def rows(page: str) -> list[Row]:
    """The rows of the page in order; raises ValueError for a line that only begins like a row."""
    found = []
    for line in page.splitlines():
        if line.startswith("| A"):
            match = _ROW.fullmatch(line)
            if match is None:
                raise ValueError(f"not a row: {line}")
            found.append(Row(match["number"], match["built"], match["text"].strip()))
    return found


def markers(source: str, path: str) -> Iterator[Marked]:
    """The rows that a test file claims: by a decorator, in `pytestmark`, or for one parameter."""
    tree = ast.parse(source)
    owners = {
        id(decorator): node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.row":
            owner = owners.get(id(node))
            test = path if owner is None else f"{path}::{owner}"
            if not node.args or node.keywords:
                raise MarkerError(f"{test}: a row is marked by its number, such as row('A063')")
            for number in node.args:
                if not (isinstance(number, ast.Constant) and isinstance(number.value, str)):
                    raise MarkerError(f"{test}: {ast.unparse(number)} is not a number of a row")
                yield Marked(number.value, test)


def all_markers() -> Iterator[Marked]:
    for path in sorted(TESTS.rglob("test_*.py")):
        yield from markers(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())


def by_number(marked: Iterator[Marked]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for number, test in marked:
        found[number].append(test)
    return found


def untested(promised: Sequence[Row], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The output of `make rows`."""
    for built, heading in GROUPS.items():
        group = [row for row in promised if row.built == built and row.number not in tests]
        if group:
            yield f"{heading} ({len(group)}):"
            yield from (f"  {row.number}  {row.text}" for row in group)
            yield ""
    shown = sum(row.number in tests for row in promised)
    yield f"{shown} of {len(promised)} rows have a test."


def with_tests(promised: Sequence[Row], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for row in promised:
        yield f"{row.number}  {row.text}"
        yield from (f"      {test}" for test in tests.get(row.number, ()))


def main() -> int:
    if sys.argv[1:] not in ([], ["--tests"]):
        print("usage: scripts/rows.py [--tests]", file=sys.stderr)
        return 2
    promised, tests = rows(PAGE.read_text(encoding="utf-8")), by_number(all_markers())
    view = with_tests if sys.argv[1:] else untested
    print("\n".join(view(promised, tests)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
