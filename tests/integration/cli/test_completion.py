"""Shell completion: commands, options, and names from the cluster."""

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from support.commands.command_stage import Stage


def completed(line: str, environ: dict[str, str]) -> list[str]:
    words = line.split(" ")
    done = CliRunner().invoke(
        main,
        prog_name="penstock",
        env={
            "_PENSTOCK_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            **environ,
        },
    )
    return [each.partition(",")[2] for each in done.stdout.splitlines() if each]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("penstock top", ["topic"]),
        ("penstock topic desc", ["describe"]),
        ("penstock topic describe ev", ["events"]),
        ("penstock group describe ", ["billing"]),
        ("penstock group reset billing --topic oth", ["other"]),
        ("penstock topic list --under-r", ["--under-replicated"]),
    ],
)
def test_a_shell_completes_commands_options_and_names(
    line: str, expected: list[str], stage: Stage
) -> None:
    assert completed(line, {"PENSTOCK_BOOTSTRAP": stage.bootstrap}) == expected


def test_names_come_from_the_cluster_on_the_command_line(stage: Stage) -> None:
    line = f"penstock topic describe -b {stage.bootstrap} ev"
    assert completed(line, {"PENSTOCK_BOOTSTRAP": "127.0.0.1:1"}) == ["events"]


def test_without_a_broker_nothing_is_completed_or_printed() -> None:
    assert completed("penstock topic describe ev", {"PENSTOCK_BOOTSTRAP": "127.0.0.1:1"}) == []
