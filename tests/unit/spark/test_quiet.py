"""Spark's own output does not reach the user, unless it explains why Spark did not start."""

import os

import pytest

from penstock.spark.pipeline.failure import PipelineFailed
from penstock.spark.pipeline.quiet import quiet_start


def test_output_of_spark_is_hidden(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with quiet_start({}):
        later = os.dup(2)  # as a JVM started here has it
        os.write(2, b"WARN NativeCodeLoader\n")
    os.write(later, b"BrokenPipeError\n")
    os.close(later)
    os.write(2, b"ours\n")
    assert capfd.readouterr().err == "ours\n"


def test_a_log_level_shows_sparks_log(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_start({"spark.log.level": "INFO"}):
        os.write(2, b"INFO started\n")
    assert capfd.readouterr().err == "INFO started\n"


def test_a_failed_start_shows_what_was_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def start() -> None:
        os.write(2, b"java: command not found\n")
        raise RuntimeError("the gateway exited")

    said = "the gateway exited\njava: command not found"
    with pytest.raises(PipelineFailed, match=said), quiet_start({}):
        start()
    assert capfd.readouterr().err == ""
