"""The `penstock` command itself: help, version, late imports, wrong calls."""

import subprocess
import sys

from click.testing import CliRunner

from penstock import __version__
from penstock.cli.main import COMMANDS, main


def test_help_lists_every_command_and_imports_none() -> None:
    script = (
        "import sys\n"
        "from penstock.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "assert not [name for name in sys.modules if name.startswith('penstock.cli.log')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_every_command_can_be_imported() -> None:
    for name in COMMANDS:
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_an_unknown_command_is_a_wrong_call() -> None:
    result = CliRunner().invoke(main, ["frobnicate"])
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_the_version_is_told() -> None:
    assert __version__ in CliRunner().invoke(main, ["--version"]).stdout
