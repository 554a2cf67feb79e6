"""Feature levels of the cluster: the official tool shows and changes them, and clients
follow them.
"""

import re
from collections.abc import Iterator

import pytest

from clients.brokers import Target
from peers import java
from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.tools import tool
from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from support.brokers.wire_link import WireLink

pytestmark = [pytest.mark.peer, pytest.mark.timeout(120)]


@pytest.fixture(params=["penstock", pytest.param("kafka", marks=pytest.mark.soak)])
def alone(request: pytest.FixtureRequest) -> Iterator[Target]:
    """A separate broker: feature levels affect the whole cluster."""
    with PenstockBroker() if request.param == "penstock" else KafkaCluster() as target:
        yield target


def features(target: Target, *command: str, fails: bool = False) -> str:
    done = tool("kafka-features", "--bootstrap-server", target.bootstrap, *command, check=False)
    assert bool(done.returncode) is fails, done.stdout + done.stderr
    return done.stdout


def levels(target: Target) -> dict[str, tuple[str, str, str]]:
    """Lowest, highest and current level of the features that Kafka and Penstock both have."""
    reported = re.findall(
        r"^Feature: ((?:group|transaction)\.version)\s.*"
        r"MinVersion: (\d)\s.*MaxVersion: (\d)\s.*Level: (\d)\s",
        features(target, "describe"),
        re.MULTILINE,
    )
    return {name: (low, high, level) for name, low, high, level in reported}


def test_the_official_tool_shows_lowers_and_raises_levels(alone: Target) -> None:
    assert levels(alone) == {"group.version": ("0", "1", "1"), "transaction.version": _at("2")}
    down = features(alone, "downgrade", "--feature", "transaction.version=1")
    assert down == "transaction.version was downgraded to 1.\n"
    assert levels(alone)["transaction.version"] == _at("1")
    refused = features(alone, "upgrade", "--feature", "transaction.version=3", fails=True)
    assert "Could not upgrade transaction.version to 3. " in refused
    tried = features(alone, "upgrade", "--feature", "transaction.version=2", "--dry-run")
    assert tried == "transaction.version can be upgraded to 2.\n"
    assert features(alone, "disable", "--feature", "transaction.version") == (
        "transaction.version was disabled.\n"
    )
    assert levels(alone)["transaction.version"] == _at("0")
    up = features(alone, "upgrade", "--feature", "transaction.version=2")
    assert up == "transaction.version was upgraded to 2.\n"
    assert levels(alone)["transaction.version"] == _at("2")


def _at(level: str) -> tuple[str, str, str]:
    return "0", "2", level


def test_the_feature_metadata_version_is_rejected_by_name() -> None:
    with PenstockBroker() as broker:
        refused = features(broker, "upgrade", "--metadata", "4.3", fails=True)
    assert "Invalid update version 30 for feature metadata.version." in refused
    assert "Local controller 1 does not support this feature" in refused


@pytest.mark.parametrize(
    ("level", "epochs"), [("0", range(3)), ("1", range(3)), ("2", range(9, 99))]
)
def test_the_official_client_bumps_epochs_as_the_transaction_level_says(
    alone: Target, topic: str, level: str, epochs: range
) -> None:
    if level != "2":
        features(alone, "downgrade", "--feature", f"transaction.version={level}")
    make = ("--create", "--topic", topic, "--partitions", "2")
    copy = ("--create", "--topic", f"{topic}-copy", "--partitions", "2")
    for command in (make, copy):
        tool("kafka-topics", "--bootstrap-server", alone.bootstrap, *command)
    reported = java.run(
        "Transactions", alone.bootstrap, topic, f"{topic}-copy", jars="clients-4.4.0"
    )
    assert reported.splitlines()[1::2] == ["copied 20", "fenced true"]
    with WireLink(alone.bootstrap) as link:
        described = link.ask(DescribeTransactionsRequest(transactional_ids=[topic]))
    (state,) = described.transaction_states  # type: ignore[attr-defined]
    assert state.producer_epoch in epochs, "an epoch for each transaction, or for each producer"


def test_without_its_feature_level_the_consumer_protocol_is_refused(alone: Target) -> None:
    features(alone, "downgrade", "--feature", "group.version=0")
    with WireLink(alone.bootstrap) as link:
        beat = link.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            )
        )
        shown = link.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))
    unsupported = 35
    assert beat.error_code == unsupported  # type: ignore[attr-defined]
    assert shown.groups[0].error_code == unsupported  # type: ignore[attr-defined]
