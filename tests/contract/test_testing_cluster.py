"""The shipped cluster fixture as its users would use it, and a cluster's `/metrics`."""

import re
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.process import wait_until
from penstock.errors import ConfigError
from penstock.testing.cluster import TemporaryCluster

pytestmark = pytest.mark.peer

MANAGER = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"


@pytest.fixture(scope="session")
def broker_settings() -> dict[str, str]:
    return {"replica.lag.time.max.ms": "1500", "auto.leader.rebalance.enable": "false"}


def metrics(cluster: TemporaryCluster, broker: int) -> dict[str, float]:
    with urlopen(f"http://{cluster.http(broker)}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        name: float(value) for name, value in re.findall(r"^(kafka_\S+) (\S+)$", text, re.MULTILINE)
    }


def write(cluster: TemporaryCluster, topic: str, *values: str) -> None:
    failed: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda e, _: failed.append(e))
    assert producer.flush(30) == 0
    assert failed == [None] * len(values)


def test_acknowledged_records_survive_the_leaders_death(cluster: TemporaryCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("kept", 1, 3)])["kept"].result()
    write(cluster, "kept", "a", "b")
    leader = admin.list_topics("kept", timeout=10).topics["kept"].partitions[0].leader
    cluster.kill(leader)
    assert cluster.running == {0, 1, 2} - {leader}
    write(cluster, "kept", "c")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("kept", 0, 0)])
    found: list[str] = []

    def all_read() -> bool:
        found.extend((m.value() or b"").decode() for m in consumer.consume(3, 0.2) if not m.error())
        return len(found) >= 3

    wait_until(all_read, 20, "three records")
    consumer.close()
    assert found == ["a", "b", "c"]
    cluster.start(leader)
    assert cluster.running == {0, 1, 2}
    with pytest.raises(ConfigError, match="broker 9"):
        cluster.kill(9)


@pytest.mark.row("A082", "A160")
def test_metrics_show_the_state_of_a_cluster(cluster: TemporaryCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = NewTopic("m", 1, replica_assignment=[[0, 1, 2]], config={"min.insync.replicas": "2"})
    admin.create_topics([new])["m"].result()
    write(cluster, "m", "a", "b")

    def of_leader(name: str) -> float:
        return metrics(cluster, 0)[f"{MANAGER}_{name}"]

    everyone = [metrics(cluster, broker) for broker in range(3)]
    assert sum(each[f"{CONTROLLER}_activecontrollercount"] for each in everyone) == 1
    assert [each[f"{MANAGER}_leadercount"] for each in everyone] == [1, 0, 0]
    assert [each[f"{MANAGER}_partitioncount"] for each in everyone] == [1, 1, 1]
    assert [each[f"{CONTROLLER}_offlinepartitionscount"] for each in everyone] == [0, 0, 0]
    assert of_leader("underreplicatedpartitions") == of_leader("atminisrpartitioncount") == 0
    lag = 'kafka_server_fetcherlagmetrics_consumerlag{topic="m",partition="0"}'
    assert lag not in everyone[0], "a leader has nobody to lag behind"
    wait_until(lambda: metrics(cluster, 1)[lag] == 0, 10, "broker 1 to have all")
    shrinks, expands = of_leader("isrshrinks_total"), of_leader("isrexpands_total")

    cluster.stop(2)
    wait_until(lambda: of_leader("underreplicatedpartitions") == 1, 20, "the ISR without it")
    assert of_leader("atminisrpartitioncount") == 1
    assert of_leader("underminisrpartitioncount") == 0
    assert of_leader("isrshrinks_total") == shrinks, "the controller took it out, not the leader"
    cluster.start(2)
    wait_until(lambda: of_leader("isrexpands_total") == expands + 1, 20, "it to be in sync again")
    assert of_leader("underreplicatedpartitions") == 0


@pytest.mark.row("A082")
def test_a_follower_that_hangs_shrinks_the_in_sync_set(cluster: TemporaryCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    controller = next(
        b for b in range(3) if metrics(cluster, b)[f"{CONTROLLER}_activecontrollercount"]
    )
    follower = (controller + 1) % 3
    new = NewTopic("h", 1, replica_assignment=[[controller, follower]])
    admin.create_topics([new])["h"].result()
    write(cluster, "h", "a")
    cluster.pause(follower)
    try:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1, "log_level": 0})
        producer.produce("h", b"b", partition=0)
        name = f"{MANAGER}_isrshrinks_total"
        wait_until(lambda: metrics(cluster, controller)[name] == 1, 20, "the ISR to shrink")
        assert producer.flush(10) == 0
    finally:
        cluster.resume(follower)
    name = f"{MANAGER}_isrexpands_total"
    wait_until(lambda: metrics(cluster, controller)[name] == 1, 20, "the ISR to grow")
