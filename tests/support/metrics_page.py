"""A strict parser of the metrics page: Prometheus' text format."""

import re
from typing import TypeAlias

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
LINE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


Samples: TypeAlias = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> dict[str, tuple[str, str, Samples]]:
    """Type, help and samples of each metric; asserts every rule of the format."""
    assert text.endswith("\n")
    found: dict[str, tuple[str, str, Samples]] = {}
    family = ""
    rows = iter(text.removesuffix("\n").split("\n"))
    for row in rows:
        if row.startswith("# HELP "):
            _, _, family, words = row.split(" ", 3)
            assert re.fullmatch(NAME, family)
            assert family not in found, "a metric stands in one block"
            _, kind_word, name, kind = next(rows).split(" ")
            assert (kind_word, name) == ("TYPE", family)
            found[family] = (kind, unescaped(words), {})
            continue
        match = LINE.fullmatch(row)
        assert match, row
        name, labels, number = match.groups()
        kind, _, samples = found[family]
        assert name in {family + suffix for suffix in SUFFIXES.get(kind, ("",))}
        pairs = LABEL.findall(labels or "")
        assert ",".join(f'{key}="{value}"' for key, value in pairs) == (labels or "")
        key = name, frozenset((key, unescaped(value)) for key, value in pairs)
        assert key not in samples, "a sample stands once"
        samples[key] = float(number)
    return found


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), text)
