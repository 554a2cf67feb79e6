"""The `penstock` command itself: help, version, late imports, usage errors."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from penstock import __version__
from penstock.cli.main import COMMANDS, main
from penstock.cli.produce import CODECS, INPUTS
from penstock.record.compression import Codec
from penstock.record_view.record_input import FORMATS


def test_help_lists_every_command_without_importing_any() -> None:
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


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["frobnicate"])
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_the_version_is_shown() -> None:
    assert __version__ in CliRunner().invoke(main, ["--version"]).stdout


CTRL_C_WHILE_IMPORTING = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from penstock.cli.entry import run
run()
"""


def test_ctrl_c_while_a_command_is_imported_leaves_no_traceback() -> None:
    words = [sys.executable, "-c", CTRL_C_WHILE_IMPORTING]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_while_arguments_are_parsed_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "parse_args", interrupted)
    result = CliRunner().invoke(main, ["topic", "list"])
    assert (result.exit_code, result.output) == (130, "")


def test_listing_topics_imports_few_modules() -> None:
    """Each of these would cost a tenth of a second or more; the first one declares all settings."""
    slow = ("penstock.config.broker", "penstock.broker", "penstock.log", "penstock.local")
    script = (
        "import sys\n"
        "from penstock.cli.main import main\n"
        "try:\n"
        "    main(['topic', 'list', '-b', '127.0.0.1:1'])\n"
        "except SystemExit as ended:\n"
        "    assert ended.code == 3\n"
        f"slow = [name for name in sys.modules if name.startswith({slow!r})]\n"
        "assert slow == [], slow\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["serve", "produce", "consume"])
def test_the_help_of_a_frequent_command_imports_neither_client_nor_broker(name: str) -> None:
    script = f"""
import sys
from penstock.cli.main import main
main(["{name}", "--help"], standalone_mode=False)
print(sorted(each for each in sys.modules if each.startswith(
    ("penstock.client.cluster", "penstock.broker", "penstock.wire", "asyncio"))))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_choices_in_the_help_of_produce_are_the_supported_ones() -> None:
    assert list(CODECS) == [codec.name.lower() for codec in Codec]
    assert INPUTS == FORMATS
