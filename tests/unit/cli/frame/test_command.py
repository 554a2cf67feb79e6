"""Features of every command: formats, examples, complete help, hints for misspelt names."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.frame.command import Verb
from penstock.cli.main import ALIASES, COMMANDS, main
from penstock.cli.output import human_bytes


def verbs(command: click.Command = main, name: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            child = command.get_command(context, each)
            assert child is not None
            yield from verbs(child, f"{name} {each}".strip())
    else:
        yield name, command


ALL = dict(verbs())


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_the_common_options_and_examples(name: str) -> None:
    command = ALL[name]
    assert isinstance(command, Verb)
    spellings = {each for param in command.params for each in param.opts}
    assert {"--format", "--quiet", "--yes"} <= spellings
    assert command.examples
    assert any(f"penstock {name}" in each for each in command.examples), command.examples


@pytest.mark.parametrize("name", ALL)
def test_help_is_not_cut(name: str) -> None:
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    for each in ALL[name].examples:  # type: ignore[attr-defined]
        assert f"  {each}\n" in shown.output


@pytest.mark.parametrize("noun", COMMANDS)
def test_no_summary_is_cut(noun: str) -> None:
    assert (
        "...\n" not in CliRunner().invoke(main, [noun, "--help"]).output.partition("Commands:")[2]
    )


def test_a_misspelt_name_gets_a_hint() -> None:
    for words, hint in (
        (["topik"], "Did you mean 'topic'?"),
        (["topic", "lst"], "Did you mean 'list'?"),
        (["topic", "list", "--frmat", "json"], "--format"),
    ):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2
        assert hint in result.stderr


def test_a_usage_error_is_json_if_json_is_requested() -> None:
    for words in (["topik"], ["topic", "list", "--frmat"], ["topic", "create"]):
        result = CliRunner().invoke(main, [*words, "--format", "json"])
        assert result.exit_code == 2
        assert '"error": ' in result.stderr, words


def test_aliases_mean_their_commands() -> None:
    for alias, name in ALIASES.items():
        assert name in COMMANDS
        shown = CliRunner().invoke(main, [alias, "--help"])
        assert shown.exit_code == 0
    assert "List topics" in CliRunner().invoke(main, ["t", "ls", "--help"]).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_a_script_of_its_shell(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).output
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in script


def test_profiles_are_made_used_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, ["profile", *words])
        assert result.exit_code == 0, result.output
        return result.output

    assert "created lab" in run("create", "lab", "-X", "bootstrap.servers=h:1", "--use")
    run("create", "secret", "-X", "sasl.password=1234")
    assert run("show", "secret") == "sasl.password=[hidden]\n"
    assert run("list").splitlines()[1:] == [
        "classic  no      -",
        "lab      yes     h:1",
        "secret   no      -",
    ]
    assert run("use", "classic") == "using classic\n"
    assert run("use", "--none") == "using no profile\n"
    assert run("delete", "lab") == "deleted lab\n"
    gone = CliRunner().invoke(main, ["profile", "delete", "lab"])
    assert gone.exit_code == 2
    assert "profile 'lab' is unknown; there are classic, secret" in gone.stderr


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 40, "1.0 TiB"), (None, "-")],
)
def test_sizes_for_people(size: int | None, text: str) -> None:
    assert human_bytes(size) == text
