"""The command lines of Kafka's tools: one dash or two, old names, and mistakes."""

import os
import tomllib
from pathlib import Path

import pytest

from penstock.kafka_tools import topics
from penstock.kafka_tools.main import main
from penstock.kafka_tools.options import Table, text
from penstock.kafka_tools.parser import UsageError, parse
from penstock.kafka_tools.run_class import CLASSES
from penstock.kafka_tools.table import MISTAKEN, MODULES, tool
from penstock.kafka_tools.transactions import TOOL as TRANSACTIONS
from penstock.kafka_tools.usage import usage
from support.commands.kafka_tool import call_tool

TOPICS = topics.TOOL.table


@pytest.mark.row("A172")
@pytest.mark.parametrize(
    "line",
    [
        "--describe --topic t --partitions 3",
        "-describe -topic t -partitions 3",
        "--desc --topic=t --partition 3",
        "-descr --topic t --partitions=3",
    ],
)
def test_one_dash_two_dashes_and_abbreviations_mean_the_same(line: str) -> None:
    found = parse(TOPICS, line.split())
    assert found.has("describe")
    assert (found.text("topic"), found.number("partitions")) == ("t", 3)


def test_a_negative_number_is_a_value() -> None:
    from penstock.kafka_tools.consumer_groups import TOOL

    assert parse(TOOL.table, ["--shift-by", "-10"]).number("shift-by") == -10


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--topic", "Option topic requires an argument"),
        ("--partitions x", "Cannot parse argument 'x' of option partitions"),
        ("--replication-factor 1 --replication-factor 2", "Found multiple arguments for option"),
        ("--zz 1", "zz is not a recognized option"),
        ("--under", "under is not a recognized option"),
    ],
)
def test_mistakes_are_reported_in_kafkas_words(line: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse(TOPICS, line.split())


@pytest.mark.row("A173")
@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (
            "kafka-topics.sh --create --partitons 3 --topic t",
            "kafka-topics.sh --create --partitions 3 --topic t",
        ),
        (
            "kafka-console-producer.sh --brokder-list b:9092 --topic t",
            "kafka-console-producer.sh --broker-list b:9092 --topic t",
        ),
        (
            "kafka-reassign-partitions.sh --zookeeper z --reassigment-json-file f --execute",
            "kafka-reassign-partitions.sh --zookeeper z --reassignment-json-file f --execute",
        ),
        ("kafka-topic.sh --list --zookeeper z", "kafka-topics.sh --list --zookeeper z"),
        ("kafka-transactions.sh lst", "kafka-transactions.sh list"),
    ],
)
def test_the_corrected_line_is_shown_for_a_mistake(line: str, meant: str) -> None:
    done = call_tool(*line.split())
    assert done.code == 1
    assert "did you mean" in done.err
    assert done.err.splitlines()[-1] == f"  {meant}"


def test_a_sub_command_has_options_of_its_own() -> None:
    found = parse(TRANSACTIONS.table, ["--bootstrap-server", "b", "list", "--duration-filter", "5"])
    assert (found.command, found.number("duration-filter")) == ("list", 5)
    with pytest.raises(UsageError, match="duration-filter is not a recognized option"):
        parse(TRANSACTIONS.table, ["describe", "--duration-filter", "5"])


def test_incompatible_options_are_refused() -> None:
    done = call_tool("kafka-topics.sh", "--list", "--create", "--bootstrap-server", "b")
    assert done.err.startswith("Command must include exactly one action")
    done = call_tool("kafka-topics.sh", "--create", "--bootstrap-server", "b")
    assert done.err.startswith('Missing required argument "[topic]"')
    words = ["--list", "--partitions", "3", "--bootstrap-server", "b"]
    done = call_tool("kafka-topics.sh", *words)
    assert done.err.startswith('Option "[partitions]" can\'t be used with option "[list]"')


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_tool_has_help(name: str) -> None:
    shown = usage(tool(name).table)
    assert tool(name).table.name == name
    for option in tool(name).table.options:
        assert f"--{option.name}" in shown
    if name != "zookeeper-shell":  # it prints ZooKeeper's words
        assert main(f"{name}.sh", ["--help"]) == 1


def test_an_option_with_many_values_takes_all_following_words() -> None:
    from penstock.kafka_tools.producer_perf import TOOL

    found = parse(TOOL.table, ["--producer-props", "a=1", "b=2", "--topic", "t"])
    assert list(found.all("producer-props")) == ["a=1", "b=2"]


def test_an_unknown_class_gets_a_suggestion() -> None:
    done = call_tool("kafka-run-class.sh", "kafka.tools.GetOffsetShel")
    assert "did you mean kafka.tools.GetOffsetShell?" in done.err


def test_a_default_is_used_where_nothing_is_given() -> None:
    table = Table("t", "", (text("time", "T", "", default="latest"),))
    assert parse(table, []).text("time") == "latest"


def test_a_list_of_broker_ids_is_not_an_address() -> None:
    from penstock.kafka_tools.options import BROKER_LIST

    for name, is_address in {
        "kafka-console-producer": True,
        "kafka-get-offsets": True,
        "kafka-reassign-partitions": False,
        "kafka-log-dirs": False,
    }.items():
        assert parse(tool(name).table, ["--broker-list", "0,1"]).takes(BROKER_LIST) is is_address


@pytest.mark.parametrize(
    "script", ["kafka-server-start.sh", "zookeeper-server-start.sh", "zookeeper-shell.sh"]
)
def test_the_usage_is_printed_once(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(script, []) == 1
    assert capsys.readouterr().err.count("USAGE: ") == 1


def test_every_script_in_the_clone_is_a_link_to_one_that_can_run() -> None:
    folder = Path(__file__).parents[3] / "bin"
    run_tool = folder / "run-tool"
    assert [each.name for each in folder.glob("*.sh") if each.resolve() != run_tool] == []
    assert os.access(run_tool, os.X_OK)


def test_every_tool_has_a_script_in_the_clone_and_one_that_pip_installs() -> None:
    root = Path(__file__).parents[3]
    scripts = {f"{name}.sh" for name in (*MODULES, *MISTAKEN)}
    assert {each.name for each in (root / "bin").glob("*.sh")} == scripts
    installed = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert {name for name in installed if name.endswith(".sh")} == scripts
    assert set(CLASSES.values()) <= set(MODULES)
