"""Every example in a command's help does what it says."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from penstock.cli.frame.command import Verb
from penstock.cli.main import main
from support.commands.command_stage import Stage

ELSEWHERE = (
    *("serve", "stop", "shell", "sql", "lab", "pipeline", "cluster start", "cluster stop"),
    *("cluster status", "metadata import", "log adopt", "log forget", "bundle"),
    *("broker decommission", "reassign run", "txn abort", "txn describe", "logs", "group watch"),
    *("metadata export", "acl", "user", "quota", "token", "delay", "dlq", "registry"),
    *("console", "mcp", "rest", "backup", "restore"),
)
"""Servers, Spark, and commands that need more than a broker with some topics: other tests
run them.
"""


def examples(command: click.Command = main, name: str = "") -> Iterator[str]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            child = command.get_command(context, each)
            assert child is not None
            yield from examples(child, f"{name} {each}".strip())
    elif isinstance(command, Verb) and not name.startswith(ELSEWHERE):
        yield from command.examples


def test_every_command_has_an_example() -> None:
    def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for each in command.list_commands(context):
                child = command.get_command(context, each)
                assert child is not None
                yield from commands(child, f"{name} {each}")
        else:
            yield name, command

    lacking = [
        name
        for name, each in commands(main, "penstock")
        if not isinstance(each, Verb)
        or not each.examples
        or not any(f"{name} " in f"{example} " for example in each.examples)
    ]
    assert lacking == []


def test_examples_do_what_they_say(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", stage.bootstrap)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(stage.folder))
    (stage.folder / "server.properties").write_text("log.retention.hours=24\n")
    (stage.folder / "prices.csv").write_text("key,value\na,1\n")
    (stage.folder / "lines.txt").write_text("a:1\n")
    before = (
        *(f"topic create {name}" for name in ("old", "test-1")),
        *(f"group reset {name} --to 0 -t events --execute" for name in ("old", "test-1")),
    )
    last = sorted(
        examples(), key=lambda each: "delete" in each
    )  # the other examples still use what these delete
    failed = {}
    for example in (*(f"penstock {each}" for each in before), *last):
        command = example.rpartition("| ")[2].partition(" > ")[0].replace("penstock-data", ".")
        words = shlex.split(command)
        if words[0] != "penstock" or "--follow" in words:
            continue  # test_completion.py covers a shell's eval; --follow never ends
        done = CliRunner().invoke(main, words[1:], input="a\nb\n")
        if done.exit_code:
            failed[example] = done.output
        if "--use" in words:  # it would affect all other examples
            CliRunner().invoke(main, ["profile", "use", "--none"])
    assert failed == {}
