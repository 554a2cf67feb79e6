"""Kafka's own tools, about ninety calls: they print the same about Penstock as about the real
Kafka.

The calls are in `tests/tool_table/calls.py`; all run in one JVM, in order, on both brokers.
"""

import json
import shlex
import time
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from peers.java import java_process
from peers.kafka import KafkaCluster
from peers.lines import LineProcess
from peers.penstock import PenstockBroker
from peers.tools import main_class
from tool_table.call import Call, Done, compared
from tool_table.calls import CALLS

VERSION = "4.3.1"
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 5}

EXPECTED = {
    "kafka-topics --describe --topics-with-overrides --exclude-internal": "with eligible leader "
    "replicas every topic of a KRaft cluster has min.insync.replicas of its own",
}
"""Calls whose output differs, and why."""


@pytest.fixture
def tools() -> Iterator[LineProcess]:
    with java_process("Tools", jars=f"kafka-{VERSION}") as process:
        yield process


def play(call: Call, tools: LineProcess, bootstrap: str, folder: Path) -> Done:
    file = folder / "content"
    file.write_text(call.content)
    words = shlex.split(call.arguments.replace("{file}", str(file)))
    # The sub-command of kafka-cluster comes first.
    at = 1 if not words[0].startswith("-") else 0
    args = [*words[:at], "--bootstrap-server", bootstrap, *words[at:]]
    asked = {"main": main_class(call.tool, VERSION), "args": args, "stdin": call.stdin}
    return Done(**json.loads(tools.ask(json.dumps(asked), timeout_s=60)))


def difference(call: Call, theirs: Done, ours: Done) -> list[str]:
    (code, out, errors), (our_code, our_out, our_errors) = (
        compared(call, each) for each in (theirs, ours)
    )
    reported = list(unified_diff(out, our_out, "kafka", "penstock", n=1, lineterm=""))
    if code != our_code:
        reported.append(f"exit code: kafka {code}, penstock {our_code}: {ours.err[-300:]}")
    if errors != our_errors:
        reported.append(f"exceptions: kafka {errors}, penstock {our_errors}")
    return reported


def attempts(call: Call) -> int:
    """How often a call may be made: calls that change nothing can be repeated."""
    return 3 if "--describe" in call.arguments or "--list" in call.arguments else 1


@pytest.mark.row("A133", "A136", "A137")
@pytest.mark.peer
@pytest.mark.timeout(300)
def test_every_call_prints_the_same_as_about_kafka(tools: LineProcess, tmp_path: Path) -> None:
    options = [word for pair in SETTINGS.items() for word in ("--set", "=".join(map(str, pair)))]
    different: dict[str, list[str]] = {}
    with (
        KafkaCluster(settings=SETTINGS) as kafka,
        PenstockBroker("--set", "broker.id=0", *options, folder=tmp_path) as penstock,
    ):
        for call in CALLS:
            for _ in range(attempts(call)):
                theirs = play(call, tools, kafka.bootstrap, tmp_path)
                ours = play(call, tools, penstock.bootstrap, tmp_path)
                different[str(call)] = difference(call, theirs, ours)
                if not different[str(call)]:
                    break
                time.sleep(1)  # Kafka answers a change before its brokers have learned of it
    different = {name: reported for name, reported in different.items() if reported}
    surprising = [
        "\n".join([name, *reported]) for name, reported in different.items() if name not in EXPECTED
    ]
    assert not surprising, "\n\n".join(["", *surprising])
    assert set(EXPECTED) <= set(different), "they no longer differ: strike them from the table"
