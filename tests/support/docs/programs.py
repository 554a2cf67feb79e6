"""The Python programs on the pages of the documentation."""

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", *(f"docs/{each.name}" for each in sorted((ROOT / "docs").glob("*.md")))]
ADDRESS = "127.0.0.1:9092"
"""The broker address on all pages."""


def programs(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"(?s)```python\n(.*?)```", text)


def parsed(page: str, number: int) -> ast.Module:
    return ast.parse(programs(page)[number], f"{page}, program {number}")


def run(page: str, number: int, bootstrap: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs a program as printed except for the address; `names` has what the surrounding text
    defines.

    A program may await, as at the prompt of `python -m asyncio`.
    """
    text = programs(page)[number].replace(ADDRESS, bootstrap)
    code = compile(text, f"{page}, program {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names


def imported(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Modules, and the names imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names)


def spark_options(tree: ast.Module) -> Iterator[str]:
    """Names passed to `option` and `options`, also by a dictionary of this program."""
    known: dict[str, ast.Dict] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            known |= {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "option":
            yield ast.literal_eval(node.args[0])
        elif node.func.attr == "options":
            for each in node.keywords:
                if each.arg is not None:
                    yield each.arg
                    continue
                given = known[each.value.id] if isinstance(each.value, ast.Name) else each.value
                assert isinstance(given, ast.Dict)
                yield from (ast.literal_eval(key) for key in given.keys if key is not None)
