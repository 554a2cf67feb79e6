"""Every command in README, docs and examples is run, here or by a named test.

Commands that other tests run are parsed here, so that they name no option that does not exist.
"""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from penstock.broker.startup.state_file import write_state
from penstock.cli.main import ALIASES, COMMANDS, main
from penstock.testing.broker import EmbeddedBroker

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md"))]
GENERATED = {"docs/cli.md", "docs/settings.md", "docs/compatibility.md"}

ELSEWHERE = {
    "serve": "tests/contract/test_serve.py",
    "stop": "tests/contract/test_serve.py",
    "delay serve": "tests/integration/local/test_delay_process.py",
    "rest serve": "tests/integration/rest/test_rest.py",
    "console": "tests/integration/console/test_console.py",
    "mcp": "tests/integration/console/test_mcp.py",
    "registry serve": "tests/integration/registry/test_registry_process.py",
    "registry user": "tests/integration/registry/test_registry_process.py",
    "group describe billing --records": "tests/integration/cli/test_share_commands.py",
    "backup": "tests/contract/test_backup.py",
    "restore": "tests/contract/test_backup.py",
    "cluster start": "tests/contract/cli/test_cluster.py",
    "cluster status": "tests/contract/cli/test_cluster.py",
    "cluster stop": "tests/contract/cli/test_cluster.py",
    "broker decommission": "tests/integration/cli/test_moves.py",
    "reassign run": "tests/integration/cli/test_moves.py",
    "txn abort": "tests/integration/cli/test_transactions.py",
    "cluster rebalance --without": "tests/contract/cli/test_rebalance.py",
    "lab": "tests/contract/cli/test_lab.py",
    "log adopt": "tests/unit/cli/test_log_commands.py",
    "metadata import": "tests/unit/cli/test_metadata_commands.py",
    "pipeline pack": "tests/contract/test_spark_cluster.py",
    "pipeline run": "tests/contract/test_pipeline_command.py",
    "pipeline status": "tests/contract/test_pipeline_command.py",
    "pipeline stop": "tests/contract/test_pipeline_command.py",
    "pipeline validate": "tests/contract/test_pipeline_command.py",
    "token create": "tests/integration/broker/test_delegation_tokens.py",
    "token expire": "tests/integration/broker/test_delegation_tokens.py",
    "token list": "tests/integration/broker/test_delegation_tokens.py",
    "token renew": "tests/integration/broker/test_delegation_tokens.py",
    "sql": "tests/contract/test_sql_command.py",
    "shell": "tests/contract/test_sql_command.py",
}
"""Commands that need Java, other servers, a terminal or signals, and the tests that run them."""

MEANT = {
    "TOPIC": "events",
    "T": "events",
    "G": "billing",
    "BYTES": "1000000",
    "PARTITION": "0",
    "FILE": "logs/events-0/00000000000000000000.log",
    "DIR": "logs",
    "D": ".",
}
MISSING = {
    "topic describe": ["events"],
    "topic create": ["created"],
    "topic alter": ["events", "-c", "retention.ms=1000"],
    "topic delete": ["deleted"],
    "group describe": ["billing"],
    "group reset": ["billing", "--to", "end"],
    "group delete": ["deleted"],
}
"""Arguments that a reader adds to a command of which a page shows only the name."""


SUPER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Documented(NamedTuple):
    """A command on a page, and its piped input."""

    page: str
    command: str
    typed: str = "c\n"

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"


def documented() -> Iterator[Documented]:
    for page in PAGES:
        if page in GENERATED:
            continue
        text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"(?m)^    (.*\bpenstock .*)$", text):
            typed = Documented._field_defaults["typed"]
            for part in re.split(r" && | \| |\s{2,}(?=penstock )", line.partition("  #")[0]):
                found = re.fullmatch(r"\s*(?:[A-Z_]+=\S+ )*(penstock .*)", part)
                if found is not None:
                    for each in spelled_out(found[1].strip()):
                        yield Documented(page, each, typed)
                elif part.startswith("printf "):
                    typed = shlex.split(part)[1].replace("\\n", "\n")


def in_fences(page: str) -> list[str]:
    """The lines of a page between ```sh and ```."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"(?ms)^```(?:sh|bash)\n(.*?)^```", text)
    return [re.split(r"  #| >> ", line)[0].strip() for each in blocks for line in each.splitlines()]


def in_sentences() -> Iterator[Documented]:
    """Commands between backticks in running text."""
    for page in PAGES:
        if page not in GENERATED:
            text = (ROOT / page).read_text(encoding="utf-8")
            text = re.sub(r"(?ms)^```.*?^```", "", text).replace("\\|", "|")
            for found in re.findall(r"`(penstock [a-z][^`]*)`", text):
                for each in spelled_out(" ".join(found.split())):
                    yield Documented(page, each)


def spelled_out(command: str) -> Iterator[str]:
    """Expands a page's notation: `a|b` is two commands, `[x]` is optional, and a remark is in
    brackets.
    """
    command = re.sub(r"\s+#.*$|\s\([^)]*\)$|…", "", command)
    command = re.sub(r"[\[\]]", "", command) if "`" not in command else command
    found = re.search(r"\S+\|\S+", command) if "'" not in command and '"' not in command else None
    if found is None:
        yield command
        return
    for each in found[0].split("|"):
        yield command.replace(found[0], each)


ALL = sorted(set(documented()))


def words_of(command: str) -> list[str]:
    return [MEANT.get(word, word) for word in shlex.split(command.replace("\\`", "`"))[1:]]


def test_commands_are_found_on_the_pages() -> None:
    nouns = {ALIASES.get(noun := words_of(each.command)[0], noun) for each in ALL}
    assert nouns == set(COMMANDS)
    assert len({each.typed for each in ALL}) > 2, "commands with a pipe are found too"


@pytest.mark.parametrize("found", ALL, ids=str)
def test_a_command_on_a_page_names_only_options_that_exist(
    found: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = words_of(found.command)
    parse([*words, *MISSING.get(" ".join(words), [])])


def parse(words: list[str]) -> None:
    """Parses as click does before it runs a command; a missing file is no error here."""
    command: click.Command = main
    context: click.Context | None = None
    try:
        while isinstance(command, click.Group):
            context = command.make_context(command.name, list(words), parent=context)
            left = [*context._protected_args, *context.args]
            if not left:
                return  # lists its commands
            _, found, words = command.resolve_command(context, left)
            assert found is not None
            command = found
        command.make_context(command.name, list(words), parent=context)
    except click.BadParameter as error:
        if "does not exist" not in error.message and "No such file" not in error.message:
            raise


@pytest.mark.parametrize("found", sorted(set(in_sentences())), ids=str)
def test_a_command_in_a_sentence_names_only_options_that_exist(
    found: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        parse(words_of(found.command))
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        pass  # the sentence speaks of the command, not of a call
    except click.BadOptionUsage as error:
        if "requires an argument" not in error.message:
            raise


@pytest.mark.parametrize(
    "words", [["topic", "list", "--no-such"], ["topic", "lst"], ["topic", "create"], ["lst"]]
)
def test_a_mistake_on_a_page_is_found(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(words)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_command_that_another_test_runs_is_in_that_test(name: str) -> None:
    text = (ROOT / ELSEWHERE[name]).read_text(encoding="utf-8")
    verb = name.rsplit(maxsplit=1)[-1]
    assert f'"{verb}"' in text or f'"{name} ' in text, ELSEWHERE[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A broker with the topics and groups that the pages mention."""
    folder = tmp_path_factory.mktemp("documented")
    with EmbeddedBroker(directory=folder, settings=SUPER) as broker:
        write_state(folder, broker.state)
        for topic in (
            *("events", "clicks", "payments", "deleted", "grown", "emptied", "test-1"),
            *("orders-again.dlq", "dlq.orders"),
        ):
            broker.create_topic(topic)
        broker.create_topic("later", configs={"penstock.delay.to": "events"})
        for words, text in (
            (["produce", "events"], "a\nb\n"),
            (["produce", "events", "--transactional-id", "payments"], "c\n"),
            (["produce", "later", "-k", "order-7", "-H", "penstock-delay-ms=3600000"], "c\n"),
            (["group", "reset", "billing", "--to", "1", "-t", "events", "--execute"], ""),
            (["group", "reset", "orders", "--to", "1", "-t", "events", "--execute"], ""),
            (["group", "reset", "workers", "--to", "1", "-t", "events", "--execute"], ""),
            (["profile", "create", "staging"], ""),
            (["group", "reset", "deleted", "--to", "1", "-t", "events", "--execute"], ""),
        ):
            given = [] if words[0] == "profile" else ["-b", broker.bootstrap]
            home = {"XDG_CONFIG_HOME": str(folder)}
            done = CliRunner().invoke(main, [*words, *given], input=text, env=home)
            assert done.exit_code == 0, done.output
        (folder / "server.properties").write_text("log.retention.hours=24\n")
        (folder / "prices.csv").write_text("key,value\na,1\n")
        (folder / "penstock.log").write_text("[time] INFO ready (penstock)\n")
        # tests/integration/cli/test_secured_broker.py tests what the page says of a login.
        (folder / "client.properties").write_text(f"bootstrap.servers={broker.bootstrap}\n")
        yield folder, broker.bootstrap


def is_run_here(found: Documented) -> bool:
    words = " ".join(words_of(found.command))
    return not words.startswith(tuple(ELSEWHERE)) and "--watch" not in words


HERE = [each for each in ALL if is_run_here(each)]
HERE = list({each.command: each for each in HERE}.values())  # some work only once


@pytest.mark.parametrize("found", HERE, ids=str)
def test_a_command_on_a_page_does_what_it_says(
    found: Documented, folder: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, bootstrap = folder
    monkeypatch.chdir(directory)
    words = words_of(found.command)
    words += MISSING.get(" ".join(words), [])
    if words[:2] == ["metadata", "export"]:
        words += ["--dir", "."]
    environ = {"PENSTOCK_BOOTSTRAP": bootstrap, "XDG_CONFIG_HOME": str(directory)}
    done = CliRunner().invoke(main, words, env=environ, input=found.typed)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_commands_of_a_first_page_need_only_a_broker(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("key,value\na,1\n")
    with EmbeddedBroker(directory=tmp_path / "data") as broker:
        environ = {"PENSTOCK_BOOTSTRAP": broker.bootstrap, "XDG_CONFIG_HOME": str(tmp_path)}
        commands = [each for each in documented() if each.page == page and is_run_here(each)]
        assert commands
        for each in commands:
            done = CliRunner().invoke(main, words_of(each.command), env=environ, input=each.typed)
            assert done.exit_code == 0, f"{each}: {done.output}"


FENCED = {each for each in PAGES if in_fences(each)} - {"docs/security.md"}
"""tests/contract/test_security_page.py runs the commands of the security page."""


@pytest.mark.parametrize("page", sorted(FENCED))
def test_commands_in_fences_run_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [Documented(page, each) for each in in_fences(page) if each.startswith("penstock ")]
    with EmbeddedBroker(directory=tmp_path / "data") as broker:
        environ = {"PENSTOCK_BOOTSTRAP": broker.bootstrap, "XDG_CONFIG_HOME": str(tmp_path)}
        for each in commands:
            parse(words_of(each.command))
            if is_run_here(each):
                done = CliRunner().invoke(main, words_of(each.command), env=environ, input="c\n")
                assert done.exit_code == 0, f"{each}: {done.output}"


def all_pages() -> str:
    pages = [*PAGES, "CONTRIBUTING.md"]
    return "\n".join((ROOT / each).read_text(encoding="utf-8") for each in pages)


OTHER_TARGETS = {
    "run": "tests/contract/test_pipeline_demo.py",
    "test": "it runs this test, with `check` and `peers` before",
    "quick": "a part of `make test`",
    "soak": "the tests of `make test` with larger numbers",
    "check": "a part of `make test`",
    "setup": "it has made the environment that this test runs in",
    "bench": "its parts run for minutes; tests/unit/bench",
    "format": "it rewrites the sources; `make check` is the same without writing",
    "codegen": "it rewrites the sources; tests/contract/test_wire_java.py compares them",
    "site": "tests/unit/scripts/test_site.py builds it",
    "dist": "it takes minutes; tests/contract/test_installation.py installs a wheel",
    "docs": "it rewrites the pages; tests/unit/test_docs.py compares them",
    "lock": "it asks a package index",
    "faults": "it goes on for hours; tests/contract/test_machine_faults.py",
    "coverage": "the tests of `make test`, counted",
}
"""Targets on the pages that are not run here, each with the reason or its test."""


def make(*words: str) -> str:
    # The environment that runs this test is not rebuilt, whatever the sources say by now.
    # The variables of `make test ARGS=...`, which runs this test, must not reach this make.
    done = subprocess.run(
        ["make", "--old-file", ".venv/installed", "--old-file", ".venv/built", *words],
        cwd=ROOT,
        env={key: text for key, text in os.environ.items() if key != "ARGS" and "MAKE" not in key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_make_targets_on_the_pages_run() -> None:
    named = set(re.findall(r"(?m)(?:^    |`)make ([a-z]+)", all_pages()))
    assert named >= OTHER_TARGETS.keys() - {"check"}
    listed = make("help")
    for target in named:
        assert re.search(rf"(?m)^{target}\t", listed), target
        assert make("--just-print", target) or target == "setup"
    for target in named - OTHER_TARGETS.keys():
        assert make(target)
    for test in re.findall(r"tests/[a-z_/.]+", " ".join(OTHER_TARGETS.values())):
        assert (ROOT / test).exists(), test


def test_the_benchmarks_on_the_pages_exist() -> None:
    named = set(re.findall(r'make bench[^`\n]*ARGS="?([a-z_]+)', all_pages()))
    assert {each for each in named if not (ROOT / "bench" / f"{each}.py").exists()} == set()


def test_the_extras_on_the_pages_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = "\n".join(
        (ROOT / each).read_text(encoding="utf-8") for each in PAGES if each not in GENERATED
    )
    named = set(re.findall(r"pip install '\.\[([a-z,]+)\]'", pages))
    named |= set(re.findall(r"penstock-….whl\[([a-z,]+)\]", pages))
    named |= set(re.findall(r"the extra `([a-z]+)`", pages))
    assert {"spark", "cluster", "registry", "console", "sdk", "cli", "retry", "oauth"} <= named
    # There is no release on a package index yet.
    assert re.findall(r"pip install '?penstock\b(?!-….whl)[^`\n]*", pages) == []
    assert named <= set(project["optional-dependencies"])
    # tests/contract/test_installation.py installs the core. The extras would be
    # some hundred megabytes from an index: `make setup` installs all of them.
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (installed,) = re.findall(r"(?m)^EXTRAS := (.*)$", makefile)
    assert named <= set(installed.split())


def test_the_core_dependencies_on_the_page_equal_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (reported,) = re.findall(
        r"pip install \. .*core: (.*)", (ROOT / "docs/tour.md").read_text("utf-8")
    )
    needed = [re.split(r"[^a-zA-Z0-9-]", each)[0] for each in project["dependencies"]]
    assert sorted(reported.split(", ")) == sorted(needed)


def test_the_scripts_on_the_pages_exist() -> None:
    for path in re.findall(r"\.venv/bin/python ([a-z_/]+\.py)", all_pages()):
        assert (ROOT / path).exists(), path


def test_every_example_is_run_by_a_test() -> None:
    tests = [
        each.read_text(encoding="utf-8")
        for each in (ROOT / "tests").rglob("*.py")
        if each != Path(__file__)
    ]
    for example in (ROOT / "examples").iterdir():
        name = example.stem
        if name != "__pycache__":
            assert any(name in text for text in tests), example
