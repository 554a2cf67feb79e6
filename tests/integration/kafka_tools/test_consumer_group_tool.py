"""`kafka-consumer-groups.sh` with groups of several kinds and states, as Kafka's tool answers."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool

TOOL = "kafka-consumer-groups.sh"
RESET = f"{TOOL} --reset-offsets --topic t --to-earliest --execute"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as running:
        running.create_topic("t", 1)
        yield running


def out(broker: EmbeddedBroker, line: str) -> str:
    script, *words = line.split()
    done = call_tool(script, "--bootstrap-server", broker.bootstrap, *words)
    assert done.code == 0, done.out + done.err
    return done.out


@pytest.fixture
def member(broker: EmbeddedBroker) -> Iterator[str]:
    """A group with a member."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "active"})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield "active"
    consumer.close()


def test_offsets_of_a_new_group_can_be_set(broker: EmbeddedBroker) -> None:
    assert out(broker, f"{RESET} --group new").split()[-4:] == ["new", "t", "0", "0"]
    assert "new" in out(broker, f"{TOOL} --list").split()


def test_a_group_with_members_does_not_prevent_the_reset_of_others(
    broker: EmbeddedBroker, member: str
) -> None:
    reported = out(broker, f"{RESET} --group one --group {member} --group two")
    assert reported.startswith(
        f"\nError: Assignments can only be reset if the group '{member}' is inactive, but the "
        "current state is Stable.\n"
    )
    assert [line.split()[0] for line in reported.splitlines()[3:]] == ["GROUP", "one", "two"]


def test_all_groups_means_all_consumer_groups(broker: EmbeddedBroker) -> None:
    shared = "kafka-share-groups.sh"
    out(broker, f"{shared} --reset-offsets --group queue --topic t --to-earliest --execute")
    out(broker, f"{RESET} --group readers")
    assert "queue" not in out(broker, f"{TOOL} --describe --all-groups")
    reported = out(
        broker, f"{TOOL} --reset-offsets --all-groups --all-topics --to-latest --dry-run"
    )
    assert "readers" in reported
    assert "queue" not in reported
    assert "'readers'" in out(broker, f"{TOOL} --delete --all-groups")
    assert out(broker, f"{TOOL} --list").split() == []
    assert out(broker, f"{shared} --list").split() == ["queue"]


def test_a_duration_that_reaches_before_1970_means_the_beginning(broker: EmbeddedBroker) -> None:
    line = f"{TOOL} --reset-offsets --group g --topic t --by-duration P999999999999D --dry-run"
    assert out(broker, line).split()[-4:] == ["g", "t", "0", "0"]


@pytest.mark.parametrize(
    ("expression", "reported"),
    [
        ("t.*", "The regular expression `t.*` is valid.\n"),
        ("t(", "The regular expression `t(` is invalid: missing ): t(.\n"),
    ],
)
def test_a_regular_expression_is_validated_without_a_cluster(
    expression: str, reported: str
) -> None:
    assert call_tool(TOOL, "--validate-regex", expression) == (0, reported, "")
