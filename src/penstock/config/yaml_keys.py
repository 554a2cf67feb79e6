"""Finds problems in YAML, with their lines: syntax errors, repeated keys, and anchors that contain
themselves. Parsers accept a repeated key and take its last value.
"""

from collections.abc import Iterator
from typing import Any


def yaml_problem(data: bytes) -> str | None:
    """The first such problem, as a phrase with its line. Needs PyYAML."""
    import yaml  # type: ignore[import-untyped]

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(data, Loader=loader)
    except yaml.MarkedYAMLError as error:
        what = " ".join(each for each in (error.context, error.problem) if each)
        return f"line {error.problem_mark.line + 1}: not YAML: {what}"
    except yaml.YAMLError as error:  # an illegal character: the error has only a position
        line = data[: error.position].count(b"\n") + 1
        return f"line {line}: not YAML: {error.reason}"
    return next(_problems(root, set(), set()), None)


def _problems(node: Any, done: set[int], above: set[int]) -> Iterator[str]:
    """`done` and `above` hold node identities, because aliases repeat a node in many places."""
    if id(node) in above:
        yield f"line {_line(node)}: an anchor contains itself"
        return
    if id(node) in done or node is None:
        return
    above.add(id(node))
    if node.id == "mapping":
        yield from _repeated_keys(node)
        for _, value in node.value:
            yield from _problems(value, done, above)
    elif node.id == "sequence":
        for item in node.value:
            yield from _problems(item, done, above)
    above.discard(id(node))
    done.add(id(node))


def _repeated_keys(mapping: Any) -> Iterator[str]:
    lines: dict[str, int] = {}
    for key, _ in mapping.value:
        if key.id != "scalar":
            continue
        if key.value in lines:
            yield f"line {_line(key)}: {key.value} is there twice, first on line {lines[key.value]}"
        lines.setdefault(key.value, _line(key))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
