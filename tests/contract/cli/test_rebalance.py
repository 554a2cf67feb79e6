"""`penstock cluster rebalance` on a cluster that has grown, judged by Kafka's own tool."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from peers.process import wait_until
from peers.tools import tool
from penstock.cli.main import main
from penstock.testing.cluster import TemporaryCluster

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def grown() -> Iterator[TemporaryCluster]:
    """Two brokers with a topic, and a third broker that joined later."""
    with TemporaryCluster(2) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 6, 2)])["t"].result()
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        for number in range(600):
            producer.produce("t", b"%d" % number, partition=number % 6)
        assert producer.flush(30) == 0
        cluster.local.change(brokers=3)
        cluster.local.start()
        yield cluster


def run(cluster: TemporaryCluster, *words: str, code: int = 0) -> str:
    environ = {**os.environ, "PENSTOCK_BOOTSTRAP": cluster.bootstrap}
    ran = CliRunner().invoke(main, ["cluster", "rebalance", *words], env=environ)
    assert ran.exit_code == code, ran.output
    return ran.stdout if code == 0 else ran.output


def replicas(cluster: TemporaryCluster) -> dict[int, list[int]]:
    listed = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics("t", timeout=10)
    return {index: part.replicas for index, part in listed.topics["t"].partitions.items()}


@pytest.mark.row("A013", "A162")
def test_a_new_broker_gets_its_share(grown: TemporaryCluster, tmp_path: Path) -> None:
    run(grown, "--without", "2", "--execute")  # undo what other tests have moved
    before = replicas(grown)
    assert all(set(each) == {0, 1} for each in before.values())
    plan = json.loads(run(grown, "--format", "json"))
    assert plan["copied"] == 4
    assert [each["replicas_after"] for each in plan["brokers"]] == [4, 4, 4]
    assert [each["leaders_after"] for each in plan["brokers"]] == [2, 2, 2]
    assert replicas(grown) == before, "a plan alone changes nothing"

    file = tmp_path / "plan.json"
    run(grown, "--execute", "--throttle", "50000000", "--save", str(file))
    after = replicas(grown)
    assert (
        sorted(broker for each in after.values() for broker in each) == [0] * 4 + [1] * 4 + [2] * 4
    )
    verified = tool(
        "kafka-reassign-partitions", "--bootstrap-server", grown.bootstrap,
        "--reassignment-json-file", str(file), "--verify",
    ).stdout  # fmt: skip
    assert verified.count("is completed") == len(plan["moves"])
    assert "still in progress" not in verified
    leaders = AdminClient({"bootstrap.servers": grown.bootstrap}).list_topics("t", timeout=10)
    led = [part.leader for part in leaders.topics["t"].partitions.values()]
    assert sorted(led) == [0, 0, 1, 1, 2, 2]
    assert "nothing to move" in run(grown)
    assert throttles(grown) == set(), "the limits go with the moves"


def throttles(cluster: TemporaryCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    found = set()
    for kind, name in ((ResourceType.TOPIC, "t"), (ResourceType.BROKER, "1")):
        resource = ConfigResource(kind, name)
        entries = admin.describe_configs([resource])[resource].result(10)
        found |= {
            each.name
            for each in entries.values()
            if "throttled" in each.name and not each.is_default and each.value
        }
    return found


def test_impossible_plans_are_refused_with_the_reason(grown: TemporaryCluster) -> None:
    assert "--without 7" in run(grown, "--without", "7", code=2)
    assert "--topic nothing" in run(grown, "--topic", "nothing", code=2)
    assert "--throttle" in run(grown, "--throttle", "1", code=2)
    refused = run(grown, "--without", "1", "--without", "2", code=1)
    assert "no other live broker can take it" in refused


@pytest.mark.parametrize("broker", [0, 1, 2])
def test_a_brokers_settings_are_altered_whether_or_not_it_is_the_controller(
    grown: TemporaryCluster, broker: int
) -> None:
    """Two of the three brokers are not the controller."""
    admin = AdminClient({"bootstrap.servers": grown.bootstrap})
    name = "log.cleaner.threads"
    resource = ConfigResource(
        ResourceType.BROKER,
        str(broker),
        incremental_configs=[
            ConfigEntry(name, "2", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(10)

    def value() -> str | None:
        asked = ConfigResource(ResourceType.BROKER, str(broker))
        found = admin.describe_configs([asked])[asked].result(10)[name]
        reported: str | None = found.value
        return reported

    wait_until(lambda: value() == "2", 10, f"broker {broker} to take it")
