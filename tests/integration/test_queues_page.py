"""The commands and settings of docs/queues.md do what the page says, in its order."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.brokers.wire_link import WireLink
from support.commands.kafka_tool import call_tool
from support.groups.share_member import REJECT, ShareMember, make_topic, produce_records

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"(?m)^    (kafka-\S+ .*)$", PAGE.replace("\\\n", " "))
READS = ["--max-messages", "1", "--timeout-ms", "20000"]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running, WireLink(running.bootstrap) as link:
        make_topic(link, "orders")
        produce_records(link, "orders", [(b"a", b"first"), (b"b", b"second")])
        yield running


def ran(broker: EmbeddedBroker, command: str, *more: str) -> str:
    tool, *words = shlex.split(command.replace("localhost:9092", broker.bootstrap))
    done = call_tool(f"{tool}.sh", *words, *more)
    assert done.code == 0, done.out + done.err
    return done.out


def test_the_pages_commands_create_a_queue_with_dead_letters(broker: EmbeddedBroker) -> None:
    printed = [ran(broker, each, *(READS if "share-consumer" in each else ())) for each in COMMANDS]
    assert [each.split()[0] for each in COMMANDS] == [
        "kafka-configs",
        "kafka-console-share-consumer",
        "kafka-topics",
        "kafka-configs",
    ]
    assert printed[1] == "first\n", "the group starts at the first record"
    member = ShareMember(broker.bootstrap, "orders", "m", "orders")
    member.join()
    for first, last, _ in member.acquired(wait_ms=10_000):
        member.acknowledge((first, last, REJECT))
    member.close()
    listed = CliRunner().invoke(main, ["dlq", "list", "dlq.orders", "-b", broker.bootstrap])
    assert listed.exit_code == 0, listed.output
    assert "orders" in listed.output


def test_a_group_accepts_every_setting_of_the_page(broker: EmbeddedBroker) -> None:
    settings = sorted(set(re.findall(r"`((?:penstock\.)?share\.[a-z.]+=[a-z0-9_]+)`", PAGE)))
    assert len(settings) > 4
    alter = "kafka-configs --bootstrap-server localhost:9092 --entity-type groups --entity-name G"
    ran(broker, f"{alter} --alter --add-config {','.join(settings)}")
    reported = ran(broker, f"{alter} --describe")
    assert [each for each in settings if each not in reported] == []


def test_the_page_names_only_settings_that_exist() -> None:
    known = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"`((?:penstock\.|errors\.|group\.)?share\.[a-z.]+[a-z])(?:=\S+)?`", PAGE)
    )
    assert len(named) > 8
    assert [each for each in sorted(named) if f"`{each}`" not in known] == []


def test_the_feature_is_enabled(broker: EmbeddedBroker) -> None:
    (upgrade,) = re.findall(r"`(kafka-features upgrade [^`]+)`", PAGE)
    tool, verb, *words = upgrade.split()
    done = call_tool(f"{tool}.sh", "--bootstrap-server", broker.bootstrap, verb, *words)
    assert (done.code, done.out) == (0, "share.version was upgraded to 2.\n")
