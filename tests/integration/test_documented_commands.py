"""Every command in README, docs and examples is run, here or by a test that is named."""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import ALIASES, COMMANDS, main
from penstock.testing.broker import EmbeddedBroker

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md"))]
GENERATED = {"docs/cli.md", "docs/settings.md", "docs/compatibility.md"}

ELSEWHERE = {
    "serve": "tests/contract/test_serve.py",
    "stop": "tests/contract/test_serve.py",
    "acl create": "tests/integration/cli/test_access_commands.py",
    "acl explain": "tests/integration/cli/test_access_commands.py",
    "delay serve": "tests/integration/local/test_delay_process.py",
    "quota set": "tests/integration/cli/test_access_commands.py",
    "user create": "tests/integration/cli/test_access_commands.py",
    "cluster start": "tests/contract/cli/test_cluster.py",
    "cluster status": "tests/contract/cli/test_cluster.py",
    "cluster stop": "tests/contract/cli/test_cluster.py",
    "broker decommission": "tests/integration/cli/test_moves.py",
    "reassign run": "tests/integration/cli/test_moves.py",
    "status": "tests/integration/cli/test_golden.py",
    "txn describe": "tests/integration/cli/test_golden.py",
    "txn abort": "tests/integration/cli/test_transactions.py",
    "cluster rebalance": "tests/contract/cli/test_rebalance.py",
    "lab": "tests/contract/cli/test_lab.py",
    "log adopt": "tests/unit/cli/test_log_commands.py",
    "metadata import": "tests/unit/cli/test_metadata_commands.py",
    "pipeline init": "tests/unit/cli/test_pipeline_commands.py",
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
"""What needs Java, other servers, a terminal or signals, and the test that runs it."""

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
"""What a reader adds to a command of which a page shows the name alone."""


def documented() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        if page in GENERATED:
            continue
        text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"(?m)^    (.*\bpenstock .*)$", text):
            for command in re.split(r" && |\s{2,}(?=penstock )", line.partition("  #")[0]):
                if command.strip().startswith("penstock "):
                    yield from ((page, each) for each in spelled_out(command.strip()))


def spelled_out(command: str) -> Iterator[str]:
    """`a|b` is two commands, `[x]` may be there, and a remark is in brackets."""
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


def test_the_pages_have_commands() -> None:
    nouns = {ALIASES.get(noun := words_of(command)[0], noun) for _, command in ALL}
    assert nouns == set(COMMANDS)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_command_that_is_run_elsewhere_is_run_there(name: str) -> None:
    text = (ROOT / ELSEWHERE[name]).read_text(encoding="utf-8")
    verb = name.rsplit(maxsplit=1)[-1]
    assert f'"{verb}"' in text or f'"{name} ' in text, ELSEWHERE[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A broker with the topics and the groups that the pages speak of."""
    folder = tmp_path_factory.mktemp("documented")
    with EmbeddedBroker(directory=folder) as broker:
        for topic in ("events", "deleted", "grown", "emptied", "test-1"):
            broker.create_topic(topic)
        for words, text in (
            (["produce", "events"], "a\nb\n"),
            (["group", "reset", "billing", "--to", "1", "-t", "events", "--execute"], ""),
            (["profile", "create", "staging"], ""),
            (["group", "reset", "deleted", "--to", "1", "-t", "events", "--execute"], ""),
        ):
            given = [] if words[0] == "profile" else ["-b", broker.bootstrap]
            home = {"XDG_CONFIG_HOME": str(folder)}
            done = CliRunner().invoke(main, [*words, *given], input=text, env=home)
            assert done.exit_code == 0, done.output
        (folder / "server.properties").write_text("log.retention.hours=24\n")
        (folder / "penstock.log").write_text("[time] INFO ready (penstock)\n")
        # What it says of a login is tried in tests/integration/cli/test_secured_broker.py.
        (folder / "client.properties").write_text(f"bootstrap.servers={broker.bootstrap}\n")
        yield folder, broker.bootstrap


HERE = [
    (page, command)
    for page, command in ALL
    if not any(" ".join(words_of(command)).startswith(name) for name in ELSEWHERE)
    and "--watch" not in command
]


@pytest.mark.parametrize(("page", "command"), HERE, ids=[f"{a}: {b}" for a, b in HERE])
def test_a_command_on_a_page_does_what_it_says(
    page: str, command: str, folder: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del page
    directory, bootstrap = folder
    monkeypatch.chdir(directory)
    words = words_of(command)
    words += MISSING.get(" ".join(words), [])
    if words[:2] == ["metadata", "export"]:
        words += ["--dir", "."]
    environ = {"PENSTOCK_BOOTSTRAP": bootstrap, "XDG_CONFIG_HOME": str(directory)}
    done = CliRunner().invoke(main, words, env=environ, input="c\n")
    assert done.exit_code == 0, done.output


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
    "docs": "it rewrites the pages; tests/unit/test_docs.py compares them",
    "lock": "it asks a package index",
}
"""Targets that the pages name and that are not run here, each with the reason or its test."""


def make(*words: str) -> str:
    # Whatever pyproject.toml says by now, the environment that runs this test is not made anew.
    # The variables of `make test ARGS=...`, which runs this test, are not for this make.
    done = subprocess.run(
        ["make", "--old-file", ".venv/installed", *words],
        cwd=ROOT,
        env={key: text for key, text in os.environ.items() if key != "ARGS" and "MAKE" not in key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_targets_of_make_on_the_pages_run() -> None:
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
    named = set(re.findall(r"pip install '\.\[([a-z,]+)\]'", all_pages()))
    assert "spark" in named
    assert named <= set(project["optional-dependencies"])
    # Installing the core is tests/contract/test_installation.py's part. What the extras add is
    # some hundred megabytes from an index: `make setup` installs all of them.
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (installed,) = re.findall(r"(?m)^EXTRAS := (.*)$", makefile)
    assert named <= set(installed.split())


def test_the_core_dependencies_on_the_page_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (told,) = re.findall(r"pip install \. .*core: (.*)", (ROOT / "README.md").read_text("utf-8"))
    needed = [re.split(r"[^a-zA-Z0-9-]", each)[0] for each in project["dependencies"]]
    assert sorted(told.split(", ")) == sorted(needed)


def test_the_scripts_on_the_pages_exist() -> None:
    for path in re.findall(r"\.venv/bin/python ([a-z_/]+\.py)", all_pages()):
        assert (ROOT / path).exists(), path


def test_the_examples_are_run_by_tests() -> None:
    tests = [
        each.read_text(encoding="utf-8")
        for each in (ROOT / "tests").rglob("*.py")
        if each != Path(__file__)
    ]
    for example in (ROOT / "examples").iterdir():
        name = example.stem
        if name != "__pycache__":
            assert any(name in text for text in tests), example
