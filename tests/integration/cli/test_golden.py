"""The output of every command in all formats; `PENSTOCK_REWRITE=1` rewrites it: review the diff.

A call with {n} is made once per format, each time with another number, so that each call creates
its own resources. Text after <<< is typed. Every command is here, among the schemas, or in a table
with the test that shows its output.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.commands.command_stage import Stage
from support.commands.golden_output import FORMATS, block
from support.commands.json_schemas import SCHEMAS, problem

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"

CALLS: dict[str, list[str]] = {
    "status": ["status --dir {folder}", "status --dir {folder}/logs"],
    "cluster": ["cluster info", "cluster health", "cluster rebalance --topic events"],
    "broker": [
        "broker list",
        "broker describe 1",
        "broker describe 7",
        "broker config 1",
        "broker decommission 1",
    ],
    "topic": [
        "topic list events other",
        "topic list events --size --records --lag",
        "topic list --with-overrides",
        "topic list --under-replicated",
        "topic list --at-min-isr events",
        "topic describe events",
        "topic describe evnts",
        "topic describe --under-min-isr",
        "topic create new-{n} --partitions 1",
        "topic create new-{n} --if-not-exists",
        "topic create new-{n}",
        "topic create placed-{n} --replica-assignment 1,1",
        "topic create bad --replica-assignment 1:1",
        "topic alter new-{n} --config retention.ms=1000",
        "topic add-partitions new-{n} --num 2",
        "topic clone events copy-{n} --records",
        "topic trim copy-{n} --before 1 --partition 0 --dry-run",
        "topic trim copy-{n} --before 1 --partition 0",
        "topic trim copy-{n} --before 1 --partition 9",
        "topic empty copy-{n}",
        "topic delete --regex new-{n} copy-{n}",
        "topic delete placed-{n}",
        "topic delete new-{n} --if-exists",
        "topic delete --regex nothing-.*",
    ],
    "group": [
        "group list",
        "group list --state stable",
        "group list --state tired",
        "group describe billing",
        "group describe --only-with-lag --summary",
        "group describe biling",
        "group reset new-{n} --to 1 --topic events:0 --execute",
        "group reset new-{n} --shift-by 1",
        "group reset new-{n} --shift-by -5 --topic events:0",
        "group reset new-{n} --to current --topic events",
        "group reset new-{n} --by-duration 1h",
        "group reset new-{n} billing --to end",
        "group reset new-{n} --to end --shift-by 1",
        "group reset new-{n} --to end --topic events:7",
        "group reset none --to end",
        "group watch billing --count 1",
        "group rebalances billing",
        "group delete new-{n} none",
        "group delete --regex nothing-.*",
    ],
    "records": [
        "topic create typed-{n} --partitions 1",
        "produce typed-{n} -t 1700000000000 -s : <<< k:v\n",
        "produce typed-{n} -t 1700000000000 -H h=1 <<< w\n",
        "produce typed-{n} -p 7 <<< x\n",
        "consume typed-{n} --keys --headers --offsets",
        "consume typed-{n} --last 1",
        "consume typed-{n}s",
        "topic delete typed-{n}",
    ],
    "user": [
        "user create bob-{n} --iterations 4096 <<< secret\n",
        "user create bob-{n} <<< \n",
        "user describe bob-{n}",
        "user list",
        "user delete bob-{n}",
        "user describe bob-{n}",
    ],
    "quota": [
        "quota set --user bob-{n} producer_byte_rate=1024",
        "quota set --user bob-{n} producer_byte=1024",
        "quota describe --user bob-{n}",
        "quota list",
        "quota unset --user bob-{n} producer_byte_rate",
        "quota describe --user bob-{n}",
    ],
    "log": [
        "log dump {folder}/logs/events-1/00000000000000000000.log",
        "log dump {folder}/logs/events-1/00000000000000000000.log --print-data-log",
        "log dump {folder}/none.log",
        "log adopt {folder}/none --dry-run",
    ],
    "partition": ["partition describe events", "partition describe events 7"],
    "config": [
        "config list",
        "config describe topic events",
        "config describe topic events retention.ms",
        "config describe topic events retention.m",
        "config describe broker x",
        "config set topic other retention.ms=1000 --validate-only",
        "config set topic other retention.ms=x",
        "config set topic other retention.ms=1000",
        "config diff topic events other",
        "config unset topic other retention.ms",
        "config check {folder}/good.properties",
        "config check {folder}/bad.properties",
    ],
    "reassign": [
        "reassign plan",
        "reassign plan --replication-factor 2",
        "reassign plan --to 7",
        "reassign run {folder}/plan.json",
        "reassign run {folder}/bad.properties",
        "reassign watch --once",
        "reassign cancel",
    ],
    "leader": ["leader elect", "leader elect events:0", "leader elect events:9"],
    "txn": [
        "txn list",
        "txn list --state Ongoing",
        "txn describe payments",
        "txn describe none",
        "txn hanging",
        "txn abort events 0 --start-offset 0",
    ],
    "producer": ["producer list other", "producer list othr"],
    "bench": [
        "bench produce measured --records 20 --size 10",
        "bench consume measured --records 10",
        "bench end-to-end measured --records 2",
    ],
    "verify": ["verify measured --records 20", "verify measurd"],
    "plan": [
        "plan --messages 1000 --size 1k --retention 7d --compression 2",
        "plan --messages 1000",
        "plan --messages 1 --size 1 --retention 1d --replicas 4",
        "plan --from-cluster --topic events --messages 10 --size 100",
    ],
    "doctor": ["doctor", "doctor --folder {folder}"],
    "bundle": ["bundle --output {folder}/bundle.tar.gz"],
    "profile": [
        "profile create lab-{n} -X acks=all -X sasl.password=x",
        "profile show lab-{n}",
        "profile show none",
        "profile use lab-{n}",
        "profile use --none",
        "profile delete lab-{n}",
        "profile delete classic",
        "profile list",
    ],
}
APART: dict[str, list[str]] = {
    "delay": [
        "topic create other --partitions 1 --if-not-exists",
        "topic create later-{n} --partitions 1 --config penstock.delay.to=other",
        "produce later-{n} -k order -H penstock-delay-ms=3600000 <<< v\n",
        "delay list later-{n}",
        "delay list other",
        "delay peek later-{n} 0:0",
        "delay cancel later-{n} --key order",
        "delay cancel later-{n} --key none",
        "topic delete later-{n}",
    ],
    "acl": [
        "acl list",
        "acl create bob-{n} read topic:payments",
        "acl create bob-{n} all group:app* --deny --host 127.0.0.9",
        "acl create bob-{n} fly topic:payments",
        "acl create bob-{n} read payments",
        "acl list --principal bob-{n}",
        "acl explain bob-{n} read topic:payments",
        "acl explain bob-{n} write topic:payments",
        "acl explain bob-{n} read group:app --host 127.0.0.9",
        "acl explain bob-{n} read topic:pay*",
        "acl delete",
        "acl delete --principal bob-{n} --resource topic:payments",
        "acl list",
    ],
    "token": [
        "token list",
        "token create --renewer User:spark --max-lifetime-ms 60000",
        "token create --owner spark",
        "token list",
        "token renew none",
        "token expire none",
    ],
}
"""Calls on a separate broker: they create transactions, topics and ACLs that other calls would
list.
"""
OWN_SETTINGS = {
    "acl": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    },
    "token": {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="alice" password="a" user_alice="a";'
        ),
        "delegation.token.secret.key": "secret",
    },
}
LOGIN = (
    *("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN"),
    *("-X", "sasl.username=alice", "-X", "sasl.password=a"),
)

SHOWN_ELSEWHERE = {
    "serve": "tests/contract/test_serve.py",
    "stop": "tests/unit/cli/test_stop.py",
    "logs": "tests/unit/cli/test_logs.py",
    "cluster start": "tests/contract/cli/test_cluster.py",
    "cluster status": "tests/contract/cli/test_cluster.py",
    "cluster stop": "tests/contract/cli/test_cluster.py",
    "delay serve": "tests/integration/local/test_delay_process.py",
    "delay stats": "tests/integration/cli/test_delay_commands.py",
    "dlq list": "tests/integration/cli/test_dlq_commands.py",
    "dlq peek": "tests/integration/cli/test_dlq_commands.py",
    "dlq redrive": "tests/integration/cli/test_dlq_commands.py",
    "dlq purge": "tests/integration/cli/test_dlq_commands.py",
    "registry serve": "tests/integration/registry/test_registry_process.py",
    "registry user": "tests/integration/registry/test_registry_process.py",
    "log verify": "tests/unit/cli/test_log_commands.py",
    "log forget": "tests/integration/cli/test_log_forget.py",
    "rest serve": "tests/integration/rest/test_rest.py",
    "backup": "tests/contract/test_backup.py",
    "restore": "tests/contract/test_backup.py",
    "metadata export": "tests/unit/cli/test_metadata_commands.py",
    "metadata import": "tests/unit/cli/test_metadata_commands.py",
    "pipeline init": "tests/unit/cli/test_pipeline_commands.py",
    "pipeline pack": "tests/contract/test_spark_cluster.py",
    "pipeline run": "tests/contract/test_pipeline_command.py",
    "pipeline status": "tests/contract/test_pipeline_command.py",
    "pipeline stop": "tests/contract/test_pipeline_command.py",
    "pipeline validate": "tests/contract/test_pipeline_command.py",
    "sql": "tests/contract/test_sql_command.py",
    "shell": "tests/contract/test_sql_command.py",
    **{
        f"lab {each}": "tests/contract/cli/test_lab.py"
        for each in ("hw", "isr", "fetch", "truncation", "divergence", "epoch", "unclean")
    },
    "console": "tests/integration/console/test_console.py",
    "mcp": "tests/integration/console/test_mcp.py",
}
"""Commands that need Java, other servers or signals, or that run until they are stopped."""


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands, such as `topic list`."""
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_the_output_of_every_command_is_tested_somewhere() -> None:
    calls = [each for some in (CALLS | APART).values() for each in some]
    calls += [each.call for each in SCHEMAS.values()]
    every = set(leaves(main))
    here = {each for each in every if any(f"{call} ".startswith(f"{each} ") for call in calls)}
    assert every - here == SHOWN_ELSEWHERE.keys()
    for name, test in SHOWN_ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert f'"{name.split()[-1]}"' in text or f"{name} " in text, (name, test)


@pytest.fixture(autouse=True)
def environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", stage.bootstrap)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(stage.folder))
    (stage.folder / "good.properties").write_text("log.retention.hours=24\n")
    (stage.folder / "bad.properties").write_text("log.retention.hour=24\nbroker.id=x\n")
    partitions = [{"topic": "other", "partition": 0, "replicas": [1]}]
    (stage.folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": partitions}))


@pytest.mark.parametrize("noun", CALLS)
def test_a_commands_output_is_unchanged(noun: str, stage: Stage) -> None:
    check(noun, CALLS[noun], stage)


@pytest.mark.parametrize("noun", APART)
def test_a_commands_output_on_a_separate_broker_is_unchanged(
    noun: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"num.partitions": "1", **OWN_SETTINGS.get(noun, {})}
    with EmbeddedBroker(directory=tmp_path, settings=settings) as broker:
        monkeypatch.setenv("PENSTOCK_BOOTSTRAP", broker.bootstrap)
        if "listeners" in settings:
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
            CliRunner().invoke(main, ["profile", "create", "alice", *LOGIN])
            monkeypatch.setenv("PENSTOCK_PROFILE", "alice")
        check(noun, APART[noun], Stage(tmp_path, broker.bootstrap))


def check(noun: str, calls: list[str], stage: Stage) -> None:
    printed = "\n".join(
        block([*call(each, number, stage), "--format", style], stage.folder, typed(each))
        for each in calls
        for number, style in enumerate(FORMATS)
    )
    path = GOLDEN / f"{noun}.txt"
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


def call(text: str, number: int, stage: Stage) -> list[str]:
    words = text.partition(" <<< ")[0].replace("{n}", str(number))
    return words.replace("{folder}", str(stage.folder)).split()


def typed(text: str) -> str:
    return text.partition(" <<< ")[2]


@pytest.mark.parametrize("name", SCHEMAS)
def test_json_output_matches_its_schema(name: str, stage: Stage) -> None:
    words = SCHEMAS[name].call.replace("{folder}", str(stage.folder)).split()
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows, done.output
    for row in rows:
        assert problem(row, SCHEMAS[name].schema) is None


def test_errors_have_one_schema() -> None:
    calls: list[tuple[list[str], int, Any]] = [
        (["topic", "describe", "none"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["group", "describe", "none"], 1, "GROUP_ID_NOT_FOUND"),
        (["topic", "list", "-b", "127.0.0.1:1"], 3, "NETWORK_EXCEPTION"),
        (["topic", "list", "--nothing"], 2, "NoSuchOption"),
        (["cluster", "info", "--profile", "none"], 2, "ConfigError"),
    ]
    for words, code, name in calls:
        done = CliRunner().invoke(main, [*words, "--format", "json"])
        error = json.loads(done.stderr)
        assert (done.exit_code, error["error"]) == (code, name)
        assert problem(error, {"error": str, "code": (int, None), "message": str}) is None
