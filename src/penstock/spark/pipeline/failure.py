"""The error that ends a run, and the readable part of Spark's texts."""

import re
from typing import Final

_NO_PENSTOCK: Final = re.compile(r"No module named '(penstock|numpy|pyarrow|pandas)")
_NO_PYTHON: Final = re.compile(r'Cannot run program "([^"]*python[^"]*)"')

_PLAN_FOLLOWS: Final = re.compile(r";( line \d+ pos \d+;?)?$")
"""The end of Spark's message about a query; its plan follows."""


class PipelineFailed(Exception):
    """Spark, the data or a sink ended the run; the text says what and where."""


def first_lines(text: str) -> str:
    """The message without the JVM's stack trace, or advice if executors lack something."""
    missing = _missing(text)
    if missing is not None:
        return missing
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
    return "\n".join(lines[:12])


def _missing(text: str) -> str | None:
    """What executors lack, which Spark reports in fifty lines."""
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
