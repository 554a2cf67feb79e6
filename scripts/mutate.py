"""Breaks a module on purpose, in one place after the other, and lists what its tests do not notice.

    python -m scripts.mutate penstock.log.retention tests/unit/log/test_retention.py

A mutant differs in a comparison, a constant, an operator or a condition. Tests must fail for it.
One that survives shows a missing test, or a place where the difference cannot matter: a person
decides. `--lines A-B` mutates only these lines.
"""

import ast
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest

SOURCES = Path(__file__).resolve().parent.parent / "src"
SECONDS = 120
"""A mutant that never ends is noticed."""

SWAPPED: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Not: ast.UAdd,  # of a bool: its value
}


class Mutant(NamedTuple):
    """A change of one place in a syntax tree."""

    line: int
    what: str
    apply: Callable[[], None]


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    # How a class is stored (frozen, without gc) changes nothing that a test could notice.
    storage = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for holder in (*node.keywords, *node.decorator_list)
        for each in ast.walk(holder)
    }
    for node in ast.walk(tree):
        if id(node) in storage:
            continue
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Compare(ops=ops):
                for number, each in enumerate(ops):
                    yield _swapped(line, each, ops, number)
            case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.UnaryOp(op=op):
                if type(op) in SWAPPED:
                    yield _swapped(line, op, vars(node), "op")
            case ast.Constant(value=bool() as value):
                yield Mutant(line, f"{value} → {not value}", _setter(node, not value))
            case ast.Constant(value=int() as value):
                yield Mutant(line, f"{value} → {value + 1}", _setter(node, value + 1))
            case ast.Break():
                yield Mutant(line, "break → continue", _setter_of_class(node, ast.Continue))
            case _:
                pass


def _swapped(line: int, op: ast.AST, holder: Any, key: Any) -> Mutant:
    other = SWAPPED[type(op)]

    def apply() -> None:
        holder[key] = other()

    return Mutant(line, f"{type(op).__name__} → {other.__name__}", apply)


def _setter(node: ast.Constant, value: int) -> Callable[[], None]:
    return lambda: setattr(node, "value", value)


def _setter_of_class(node: ast.AST, other: type[ast.AST]) -> Callable[[], None]:
    return lambda: setattr(node, "__class__", other)


def is_noticed(module: str, path: Path, tree: ast.Module, mutant: Mutant, tests: list[str]) -> bool:
    """Whether the tests fail for this mutant, which lives in a process of its own."""
    child = os.fork()
    if child == 0:
        mutant.apply()
        code = compile(tree, path, "exec")
        original = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            return code if name == module else original(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        os._exit(_tested(tests))
    _, status = os.waitpid(child, 0)
    return status != 0


def _tested(tests: list[str]) -> int:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.alarm(SECONDS)
    alone = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"]
    return int(pytest.main([*alone, *tests]))


def main() -> None:
    words = sys.argv[1:]
    lines = range(sys.maxsize)
    if "--lines" in words:
        at = words.index("--lines")
        first, last = words[at + 1].split("-")
        lines = range(int(first), int(last) + 1)
        del words[at : at + 2]
    module, *tests = words
    path = SOURCES / f"{module.replace('.', '/')}.py"
    if not path.exists() or not tests:
        sys.exit("mutate: name a module and the tests that guard it")
    os.environ["PENSTOCK_PURE"] = "1"  # compiled, the module would not be loaded from its source
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nothing = Mutant(0, "no change", lambda: None)
    if is_noticed(module, path, tree, nothing, tests):
        sys.exit(f"mutate: {' '.join(tests)} fail without a mutant")
    made = [each for each in mutants(tree) if each.line in lines]
    survived = 0
    for each in made:
        if not is_noticed(module, path, tree, each, tests):
            survived += 1
            shown = text.splitlines()[each.line - 1].strip()
            print(f"{path.name}:{each.line}: {each.what}: {shown}", flush=True)
    print(f"mutate: {module}: {survived} of {len(made)} survived", flush=True)


if __name__ == "__main__":
    main()
