"""`penstock stop` tells whether a broker runs in a directory."""

from pathlib import Path

from click.testing import CliRunner

from penstock.broker.startup.state_file import hold_directory
from penstock.cli.main import main


def test_a_broker_without_its_state_file_is_not_told_to_be_down(tmp_path: Path) -> None:
    """It is still recovering its logs, or its pid is that of another container."""
    release = hold_directory(tmp_path)
    try:
        result = CliRunner().invoke(main, ["stop", "--dir", str(tmp_path)])
    finally:
        release()
    assert result.exit_code == 2
    assert "a broker holds broker.lock" in result.stderr
    result = CliRunner().invoke(main, ["stop", "--dir", str(tmp_path)])
    assert (result.exit_code, "no broker runs here" in result.stderr) == (2, True)
