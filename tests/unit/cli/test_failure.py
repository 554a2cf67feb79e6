"""Every error of a command ends with the documented exit code."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.failure import MEANINGS, ExitCode, SomeFailed
from penstock.cli.main import Commands, main
from penstock.cli.output import FORMAT
from penstock.client.errors import BrokerRefused, ConnectionFailed, RequestTimedOut
from penstock.errors import ConfigError, ErrorCode, ProtocolError, StorageError

REFUSED = BrokerRefused(ErrorCode.INVALID_CONFIG, "topic t", "no such setting")
DENIED = BrokerRefused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic t")

RAISED: list[tuple[BaseException, ExitCode]] = [
    (ConfigError("bad"), ExitCode.USAGE),
    (click.UsageError("bad"), ExitCode.USAGE),
    (StorageError("bad"), ExitCode.FAILED),
    (ProtocolError("bad"), ExitCode.FAILED),
    (REFUSED, ExitCode.FAILED),
    (ConnectionFailed("nobody"), ExitCode.UNREACHABLE),
    (RequestTimedOut("late"), ExitCode.UNREACHABLE),
    (DENIED, ExitCode.UNAUTHORIZED),
    (SomeFailed([REFUSED], 2), ExitCode.PARTLY_DONE),
    (SomeFailed([DENIED, DENIED], 2), ExitCode.UNAUTHORIZED),
    (ExceptionGroup("task group", [ConfigError("bad")]), ExitCode.USAGE),
    (KeyboardInterrupt(), ExitCode.INTERRUPTED),
]


class Failing(Commands):
    """`penstock fail`, which raises the error that the test chooses."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def get_command(self, _ctx: click.Context, name: str) -> click.Command:
        @click.command(name)
        @FORMAT
        def fail(output: str) -> None:  # noqa: ARG001
            raise self._error

        return fail


@pytest.mark.parametrize(("error", "code"), RAISED, ids=lambda each: type(each).__name__)
def test_a_failure_has_its_exit_code(error: BaseException, code: ExitCode) -> None:
    result = CliRunner().invoke(Failing(error), ["fail"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_failure_is_a_line_or_an_object() -> None:
    text = CliRunner().invoke(Failing(REFUSED), ["fail"]).stderr
    assert text == "penstock: topic t: INVALID_CONFIG (no such setting)\n"
    shown = CliRunner().invoke(Failing(SomeFailed([REFUSED, DENIED], 3)), ["fail", "--format=json"])
    first, second = map(json.loads, shown.stderr.splitlines())
    assert first == {
        "error": "INVALID_CONFIG",
        "code": 40,
        "message": "topic t: INVALID_CONFIG (no such setting)",
    }
    assert second["code"] == 29
    plain = CliRunner().invoke(Failing(ConfigError("bad")), ["fail", "--format", "json"])
    assert json.loads(plain.stderr) == {"error": "ConfigError", "code": None, "message": "bad"}


def test_a_bug_is_one_sentence_and_its_traceback_is_in_a_file() -> None:
    bugs = ExceptionGroup("two", [ConfigError("bad"), KeyError("bug")])
    for error, name in ((ZeroDivisionError("by zero"), "ZeroDivisionError"), (bugs, "KeyError")):
        result = CliRunner().invoke(Failing(error), ["fail"])
        assert result.exit_code == ExitCode.FAILED
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"penstock: internal error: {name}: ")
        report = Path(line.rpartition(" ")[2])
        assert name in report.read_text()
        report.unlink()


def test_the_first_of_several_failures_is_reported() -> None:
    both = ExceptionGroup("two", [ConfigError("first"), StorageError("second")])
    result = CliRunner().invoke(Failing(both), ["fail"])
    assert (result.exit_code, result.stderr) == (ExitCode.USAGE, "penstock: first\n")


def test_an_error_of_the_system_names_the_file() -> None:
    for error, text in (
        (PermissionError(13, "Permission denied", "/d/f"), "/d/f: Permission denied"),
        (
            OSError(28, "No space left on device"),
            "cannot write the output: No space left on device",
        ),
    ):
        result = CliRunner().invoke(Failing(error), ["fail"])
        assert (result.exit_code, result.stderr) == (ExitCode.FAILED, f"penstock: {text}\n")


def test_a_closed_pipe_prints_nothing() -> None:
    result = CliRunner().invoke(Failing(BrokenPipeError(32, "Broken pipe")), ["fail"])
    assert (result.exit_code, result.output) == (ExitCode.FAILED, "")


def test_a_usage_error_is_an_object_with_format_json() -> None:
    result = CliRunner().invoke(main, ["topic", "create", "t", "--format", "json", "-p", "none"])
    assert result.exit_code == ExitCode.USAGE
    assert json.loads(result.stderr)["error"] == "BadParameter"


def test_every_exit_code_is_explained() -> None:
    assert set(MEANINGS) == set(ExitCode)


def test_bootstrap_and_directory_together_are_refused() -> None:
    result = CliRunner().invoke(main, ["topic", "list", "-b", "localhost", "--dir", "."])
    assert result.exit_code == 2


def test_a_directory_without_broker_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["topic", "list", "--dir", str(tmp_path)])
    assert (result.exit_code, "no broker runs here" in result.stderr) == (2, True)
