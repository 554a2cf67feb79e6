"""Kafka's own tools and ours, called alike on two fresh brokers, print the same.

The calls are those of `tests/tool_table/calls.py`, and some that a KRaft broker would answer
otherwise.
"""

import json
import re
import shlex
from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from pathlib import Path

import pytest

from peers.java import java_process
from peers.lines import LineProcess
from peers.penstock import PenstockBroker
from peers.process import wait_until
from peers.tools import main_class
from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool
from tool_table.access_calls import ACCESS_CALLS
from tool_table.call import Call, Done, compared
from tool_table.calls import CALLS
from tool_table.more_calls import MORE_CALLS
from tool_table.share_group_calls import SHARE_GROUP_CALLS

VERSION = "4.3.1"
SETTINGS = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=5", "broker.id=0")

ALLOWED = {
    "kafka-console-consumer --topic __consumer_offsets --from-beginning --timeout-ms 3000 "
    "--formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter": "ours ends each record "
    "with a line end; Kafka's writes them one behind the other",
    "kafka-consumer-groups --describe --group k --offsets --verbose": "our consumer commits no "
    "leader epoch",
}
"""Calls whose output differs, and why."""

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECURED = {
    "broker.id": "0",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_admin="a";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "secret",
}
ADMIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    f'sasl.jaas.config={PLAIN} required username="admin" password="a";\n'
)

OF_NO_GROUP = re.compile(r"^(Dynamic configs for group )?(MEMBER|console-consumer-\d+)( are:)?$")
"""Kafka's console consumer creates a group if none is named; ours reads without one."""


@pytest.fixture
def tools() -> Iterator[LineProcess]:
    with java_process("Tools", jars=f"kafka-{VERSION}") as process:
        yield process


def words_of(call: Call, bootstrap: str, folder: Path) -> list[str]:
    file = folder / "content"
    file.write_text(call.content)
    words = shlex.split(call.arguments.replace("{file}", str(file)))
    if (folder / "admin").exists():
        words += ["--command-config", str(folder / "admin")]
    at = 1 if words and not words[0].startswith("-") else 0  # after the sub-command
    return [*words[:at], "--bootstrap-server", bootstrap, *words[at:]]


def play_theirs(call: Call, tools: LineProcess, words: list[str]) -> Done:
    asked = {"main": main_class(call.tool, VERSION), "args": words, "stdin": call.stdin}
    done = Done(**json.loads(tools.ask(json.dumps(asked), timeout_s=90)))
    # The exit of the tool itself, which the process that runs all tools reports as a failure.
    ended = re.search(r"^exit (\d+)$", done.err, re.MULTILINE)
    return Done(int(ended[1]), done.out, done.err) if ended else done


def play_ours(call: Call, words: list[str]) -> Done:
    done = call_tool(f"{call.tool}.sh", *words, stdin=call.stdin)
    return Done(done.code, done.out, done.err)


def difference(call: Call, theirs: Done, ours: Done) -> list[str]:
    (code, out, _), (our_code, our_out, _) = (compared(call, each) for each in (theirs, ours))
    out = [line for line in out if not OF_NO_GROUP.match(line)]
    reported = list(unified_diff(out, our_out, "kafka", "penstock", n=1, lineterm=""))
    if code != our_code:
        reported.append(f"exit code: kafka {code}, penstock {our_code}: {ours.err[-300:]}")
    return reported


def is_level(one: PenstockBroker, other: PenstockBroker) -> bool:
    """Whether both brokers have the same end offsets. Kafka's producer continues after its tool has
    returned, since the process that runs all tools continues.
    """
    ends = (
        call_tool(
            "kafka-get-offsets.sh", "--bootstrap-server", each.bootstrap, "--topic", "[tum].*"
        )
        for each in (one, other)
    )
    return next(ends).out == next(ends).out


def left_out(call: Call) -> bool:
    """The one call that takes Kafka's tool a minute."""
    return call.tool == "kafka-delete-records" and '"partition": 7' in call.content


@pytest.mark.row("A133", "A136", "A137")
@pytest.mark.peer
@pytest.mark.timeout(300)
def test_every_call_prints_the_same(tools: LineProcess, tmp_path: Path) -> None:
    options = [word for pair in SETTINGS for word in ("--set", pair)]
    different: dict[str, list[str]] = {}
    with (
        PenstockBroker(*options, folder=tmp_path / "theirs") as one,
        PenstockBroker(*options, folder=tmp_path / "ours") as other,
    ):
        for call in [*CALLS, *MORE_CALLS]:
            if left_out(call):
                continue
            theirs = play_theirs(call, tools, words_of(call, one.bootstrap, tmp_path))
            ours = play_ours(call, words_of(call, other.bootstrap, tmp_path))
            if reported := difference(call, theirs, ours):
                different[str(call)] = reported
            if call.tool == "kafka-console-producer":
                wait_until(partial(is_level, one, other), 20, "Kafka's producer to send")
    surprising = [
        "\n".join([name, *reported]) for name, reported in different.items() if name not in ALLOWED
    ]
    assert not surprising, "\n\n".join(["", *surprising])


@pytest.mark.row("A133")
@pytest.mark.peer
@pytest.mark.timeout(180)
def test_calls_about_acls_and_share_groups_print_the_same(
    tools: LineProcess, tmp_path: Path
) -> None:
    (tmp_path / "admin").write_text(ADMIN)
    different: dict[str, list[str]] = {}
    with EmbeddedBroker(settings=SECURED) as one, EmbeddedBroker(settings=SECURED) as other:
        for call in [*ACCESS_CALLS, *SHARE_GROUP_CALLS]:
            theirs = play_theirs(call, tools, words_of(call, one.bootstrap, tmp_path))
            ours = play_ours(call, words_of(call, other.bootstrap, tmp_path))
            if reported := difference(call, theirs, ours):
                different[str(call)] = reported
    assert not different, "\n\n".join(
        ["", *("\n".join([name, *reported]) for name, reported in different.items())]
    )
