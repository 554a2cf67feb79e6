"""The error that ends a run, and the readable part of Spark's texts."""

import re
from typing import Final

_NO_PENSTOCK: Final = re.compile(r"No module named '(penstock|numpy|pyarrow|pandas)")
_NO_PYTHON: Final = re.compile(r'Cannot run program "([^"]*python[^"]*)"')

_TRACEBACK: Final = "Traceback (most recent call last):\n"
_OURS: Final = re.compile(r"penstock(?:\.\w+)*\.[A-Z]\w*: (.+?)(?: SQLSTATE: \w+)?")
"""The last line of a Python traceback for an error of Penstock: its text is sufficient."""
_MOST_LINES: Final = 12
_PLAN_FOLLOWS: Final = re.compile(r";( line \d+ pos \d+;?)?$")
"""The end of Spark's message about a query; its plan follows."""


class PipelineFailed(Exception):
    """Spark, the data or a sink ended the run; the text says what and where."""


def first_lines(text: str) -> str:
    """The message without stack traces, or advice if executors lack something."""
    missing = _missing(text)
    if missing is not None:
        return missing
    error = _last_error(text)
    ours = _OURS.fullmatch(error)
    if ours is not None:
        return ours[1]
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith(("at ", "JVM stacktrace")):
            break
        query_end = _PLAN_FOLLOWS.search(line)
        if query_end is not None:
            lines.append(line[: query_end.start()])
            break
        if line.strip():
            lines.append(line.rstrip())
    if len(lines) > _MOST_LINES and error and error not in lines[:_MOST_LINES]:
        lines[_MOST_LINES - 1] = error  # the lines before it are its causes
    return "\n".join(lines[:_MOST_LINES])


def _last_error(text: str) -> str:
    """The error that ended the last Python traceback, or "". Earlier errors are only its causes."""
    _, found, rest = text.rpartition(_TRACEBACK)
    lines = rest.splitlines() if found else []
    return next((line.rstrip() for line in lines if not line.startswith((" ", "\t"))), "")


def _missing(text: str) -> str | None:
    """Advice if executors lack something, which Spark reports in fifty lines; else None."""
    module, python = _NO_PENSTOCK.search(text), _NO_PYTHON.search(text)
    if module is not None:
        what = f"executors cannot import {module[1]}"
    elif python is not None:
        what = f"executors have no {python[1]}"
    else:
        return None
    return (
        f"{what}: `penstock pipeline pack FILE.tar.gz` writes what they need besides Spark and "
        "Python; run with --archive FILE.tar.gz (docs/spark.md)"
    )
