"""`penstock stop` reports whether a broker runs in a directory."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.broker.startup.state_file import hold_directory
from penstock.cli.main import main


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[int]:
    """A live process that holds the directory as a broker does, identified by its pid."""
    code = (
        "import sys; from pathlib import Path; "
        "from penstock.broker.startup.state_file import hold_directory; "
        "release = hold_directory(Path(sys.argv[1])); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid


STALE = (
    '{"pid": 1, "began": "x", "broker_id": 1, "cluster_id": "c", "bootstrap": "b", "listeners": {}}'
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
@pytest.mark.parametrize(
    ("written", "reported"),
    [
        (None, "holds broker.lock and is not ready yet: wait for it, or stop it with `kill PID`"),
        ("garbage", "runs here, but broker.json is damaged and does not say where it listens:"),
        (STALE, "holds broker.lock, but broker.json is that of another: stop it with `kill PID`"),
    ],
)
@pytest.mark.parametrize("command", ["stop", "topic list", "serve --port 0"])
def test_the_lock_reveals_a_live_broker_without_a_valid_state_file(
    command: str, written: str | None, reported: str, holder: int, tmp_path: Path
) -> None:
    if written is not None:
        (tmp_path / "broker.json").write_text(written)
    result = CliRunner().invoke(main, [*command.split(), "--dir", str(tmp_path)])
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert f"{tmp_path}: a broker (pid {holder}) {reported}".replace("PID", str(holder)) in last
    assert f"`kill {holder}`" in last


def test_a_broker_without_state_file_is_not_reported_as_down(tmp_path: Path) -> None:
    """It may still be recovering its logs, or its pid is that of another container."""
    release = hold_directory(tmp_path)
    try:
        result = CliRunner().invoke(main, ["stop", "--dir", str(tmp_path)])
    finally:
        release()
    assert result.exit_code == 2
    assert "a broker holds broker.lock" in result.stderr
    result = CliRunner().invoke(main, ["stop", "--dir", str(tmp_path)])
    assert (result.exit_code, "no broker runs here" in result.stderr) == (2, True)
