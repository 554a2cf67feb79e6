"""`serve --workers`: the accepted values."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.cli.serve import WorkerCount


def count(text: str) -> int:
    return WorkerCount().convert(text, None, None)


def test_auto_means_the_cores_of_this_process() -> None:
    assert count("auto") == len(os.sched_getaffinity(0))
    assert count("3") == 3


@pytest.mark.parametrize("text", ["0", "-1", "many", "1000", ""])
def test_an_invalid_number_of_workers_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither auto nor a number from 1 to 256"):
        count(text)


def test_a_range_of_ports_has_one_for_each_worker(tmp_path: Path) -> None:
    given = ["--dir", str(tmp_path), "--port", "0"]
    given += ["--set", "advertised.listeners=PLAINTEXT://h:9093-9094"]
    for workers, why in (("1", "which is for serve --workers"), ("3", "has 2 ports for 3 workers")):
        done = CliRunner().invoke(main, ["serve", *given, "--workers", workers])
        assert done.exit_code == ExitCode.USAGE
        assert why in done.stderr
