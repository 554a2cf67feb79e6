"""What Spark prints by itself: kept from the user's terminal, and told where it explains a failure.

The JVM and the Python workers that it starts write to the standard error that the JVM was started
with: log4j's and Derby's banners, and tracebacks of workers whose JVM ends before they do.
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
    """Start the JVM inside. What it prints from then on goes to a file that nobody reads, unless
    `spark.log.level` asks for it or the start fails: then its last lines are told.
    """
    for name in _LOGGERS:
        # They print every error of a query with its Java stack before it is raised and told.
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
        # The JVM has it open; nothing is left of it when that ends.
        Path(name).unlink(missing_ok=True)


def quiet_end(context: Any) -> None:
    """Before the context stops: workers that end later find nobody, which is no news."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
