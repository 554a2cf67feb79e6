"""Hides what Spark prints by itself from the terminal, and shows it if Spark does not start.

The JVM and its Python workers write to the standard error with which the JVM was started: banners
of log4j and Derby, and tracebacks of workers whose JVM ends before them.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from penstock.spark.pipeline.failure import PipelineFailed

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_LINES = 12


@contextmanager
def quiet_start(settings: Mapping[str, str]) -> Iterator[None]:
    """Start the JVM inside. Its output goes to a temporary file, unless `spark.log.level` is set.
    If the start fails, the error has the last lines.
    """
    for name in _LOGGERS:
        # They print every error of a query with its Java stack, before it is raised.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    if "spark.log.level" in settings:
        yield
        return
    number, name = tempfile.mkstemp(prefix="penstock-spark-", suffix=".log")
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(number, 2)
    os.close(number)
    try:
        yield
    except (PySparkException, RuntimeError, OSError) as error:
        lines = Path(name).read_text(errors="replace").splitlines()[-_LINES:]
        raise PipelineFailed("\n".join([f"Spark did not start: {error}", *lines])) from error
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        # The JVM has it open; it disappears when the JVM ends.
        Path(name).unlink(missing_ok=True)


def quiet_end(context: Any) -> None:
    """Call before the context stops: hides the errors of workers that end after it."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
