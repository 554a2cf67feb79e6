"""Vulnerabilities of other products: each row of the page names tests, and secrets are compared in
constant time.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
HEAD = "## What others got wrong"
ROW = re.compile(r"^\| ((?:CVE|GHSA)-[^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
LEAST_ROWS = 23

SECRET = re.compile(
    r"password|secret|signature|hmac|proof|nonce|stored_key|server_key|client_key|csrf"
)
PUBLIC = {"client/sasl.py: combined == nonce"}
"""The client's own nonce, which it sent in the clear."""


def rows() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8").partition(HEAD)[2].partition("\n## ")[0]
    return {found[1]: found[3] for found in ROW.finditer(text)}


@cache
def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(tree) if isinstance(each, kinds)}


def test_no_row_is_missing() -> None:
    assert len(rows()) >= LEAST_ROWS


@pytest.mark.parametrize("cve", rows())
def test_each_row_names_existing_tests(cve: str) -> None:
    named = TEST.findall(rows()[cve])
    assert named
    for path, name in named:
        assert (ROOT / path).is_file(), path
        assert name in functions(ROOT / path), f"{path}::{name}"


def compared_by_equality(source: str) -> Iterator[str]:
    """Comparisons whose duration reveals how much of a secret was right (CVE-2021-38153)."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [ast.unparse(each) for each in (node.left, *node.comparators)]
        is_equality = any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
        if is_equality and any(SECRET.search(each) and "len(" not in each for each in sides):
            yield ast.unparse(node)


def test_secrets_are_compared_in_constant_time() -> None:
    source = ROOT / "src" / "penstock"
    found = {
        f"{path.relative_to(source)}: {each}"
        for path in source.rglob("*.py")
        if "messages" not in path.parts
        for each in compared_by_equality(path.read_text(encoding="utf-8"))
    }
    assert found == PUBLIC
    assert list(compared_by_equality("if given != stored.password: pass"))
