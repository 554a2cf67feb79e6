"""What every command prints, in all formats; `PENSTOCK_REWRITE=1` rewrites it: review it then.

A call with {n} is made once for each format, with another number; so each creates its own.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from support.commands.command_stage import Stage
from support.commands.golden_output import FORMATS, block
from support.commands.json_schemas import SCHEMAS, problem

GOLDEN = Path(__file__).parent / "golden"

CALLS: dict[str, list[str]] = {
    "status": ["status --dir {folder}", "status --dir {folder}/logs"],
    "cluster": ["cluster info", "cluster health"],
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


@pytest.fixture(autouse=True)
def environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", stage.bootstrap)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(stage.folder))
    (stage.folder / "good.properties").write_text("log.retention.hours=24\n")
    (stage.folder / "bad.properties").write_text("log.retention.hour=24\nbroker.id=x\n")
    partitions = [{"topic": "other", "partition": 0, "replicas": [1]}]
    (stage.folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": partitions}))


@pytest.mark.parametrize("noun", CALLS)
def test_a_command_prints_the_same_as_ever(noun: str, stage: Stage) -> None:
    printed = "\n".join(
        block([*call(each, number, stage), "--format", style], stage.folder)
        for each in CALLS[noun]
        for number, style in enumerate(FORMATS)
    )
    path = GOLDEN / f"{noun}.txt"
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


def call(text: str, number: int, stage: Stage) -> list[str]:
    return text.replace("{n}", str(number)).replace("{folder}", str(stage.folder)).split()


@pytest.mark.parametrize("name", SCHEMAS)
def test_json_has_its_schema(name: str, stage: Stage) -> None:
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
