"""`penstock log forget` on the directory of a broker that has run."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker


@pytest.mark.parametrize("is_there", [True, False])
def test_log_forget_reports_what_happens_to_the_partitions(tmp_path: Path, is_there: bool) -> None:
    home, one, two = (tmp_path / name for name in ("home", "one", "two"))
    with EmbeddedBroker(directory=home, settings={"log.dirs": f"{one},{two}"}):
        pass
    if not is_there:
        shutil.rmtree(two)
    done = CliRunner().invoke(main, ["log", "forget", "--dir", str(home), str(two)])
    assert done.exit_code == 0, done.output
    still_there = f"{two} is still there: a start with it in log.dirs serves its partitions\n"
    assert done.stdout == (still_there if is_there else "") + (
        f"the broker in {home} starts without {two}; partitions that are in none of its log.dirs "
        "are then empty\n"
    )
