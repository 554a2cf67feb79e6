"""The peers themselves: servers that other tests use as oracles start, answer and restart."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient

from peers.java import run
from peers.kafka import KafkaCluster
from peers.oracle import Oracle, RefusedError
from peers.probe import live_brokers
from peers.process import wait_until
from peers.tools import TOOLS, main_class, tool
from peers.zookeeper import ZooKeeper

pytestmark = pytest.mark.peer


def produce(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0


def first_value(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        value: bytes | None = message.value()
        return value
    finally:
        consumer.close()


def test_every_peer_is_installed() -> None:
    installer = Path(__file__).parents[2] / "scripts" / "install-peers"
    again = subprocess.run([installer], capture_output=True, text=True, timeout=20, check=True)
    assert again.stdout + again.stderr == ""


def test_a_topic_created_by_the_tool_accepts_a_record_of_librdkafka(kafka: KafkaCluster) -> None:
    where = ("--bootstrap-server", kafka.bootstrap)
    tool("kafka-topics", *where, "--create", "--topic", "made-by-the-tool")
    assert "made-by-the-tool" in tool("kafka-topics", *where, "--list").stdout.split()

    produce(kafka.bootstrap, "made-by-the-tool", b"hello")
    assert first_value(kafka.bootstrap, "made-by-the-tool") == b"hello"


def test_a_stopped_broker_comes_back_with_its_data(tmp_path: Path) -> None:
    with KafkaCluster(folder=tmp_path) as kafka:
        produce(kafka.bootstrap, "kept", b"hello")
        kafka.stop(0)
        assert kafka.running == set()
        assert (kafka.data_dir(0) / ".kafka_cleanshutdown").exists()
        kafka.start(0)
        assert first_value(kafka.bootstrap, "kept") == b"hello"


def test_three_brokers_form_a_cluster_and_survive_a_kill() -> None:
    with KafkaCluster(3) as kafka:
        assert live_brokers(kafka.port(0)) == {0, 1, 2}
        kafka.kill(2)
        wait_until(lambda: live_brokers(kafka.port(0)) == {0, 1}, 20, "broker 2 to be missed")


def test_a_failing_tool_reports_the_reason(kafka: KafkaCluster) -> None:
    where = ("--bootstrap-server", kafka.bootstrap)
    failed = tool("kafka-topics", *where, "--describe", "--topic", "never-made", check=False)
    assert failed.returncode == 1
    assert "never-made" in failed.stdout + failed.stderr


def test_every_tool_has_its_class_in_the_jars() -> None:
    classes = {main_class(name, "4.3.1") for name in TOOLS}
    assert len(classes) == len(TOOLS)


def test_three_zookeeper_servers_elect_a_leader_and_survive_its_death() -> None:
    with ZooKeeper(3) as zookeeper:
        modes = {server: zookeeper.mode(server) for server in range(3)}
        assert sorted(map(str, modes.values())) == ["follower", "follower", "leader"]
        client = KazooClient(zookeeper.connect)
        client.start(20)
        try:
            client.create("/before", b"hello")
            leader = next(server for server, mode in modes.items() if mode == "leader")
            zookeeper.kill(leader)
            assert client.retry(client.get, "/before")[0] == b"hello"
            zookeeper.start(leader)
        finally:
            client.stop()
            client.close()


def test_kafka_on_zookeeper_is_killed_and_restarted() -> None:
    with ZooKeeper() as zookeeper, KafkaCluster(zookeeper=zookeeper.connect) as kafka:
        produce(kafka.bootstrap, "kept", b"hello")
        kafka.kill(0)
        kafka.start(0)
        assert first_value(kafka.bootstrap, "kept") == b"hello"
        where = ("--bootstrap-server", kafka.bootstrap)
        assert "kept" in tool("kafka-topics", *where, "--list", version="3.9.2").stdout.split()


def test_a_java_source_file_reads_its_input_and_prints() -> None:
    answers = run("Oracle", jars="clients-4.4.0", stdin="ApiVersionsRequest 0 \nNonsense\n")
    again, refusal = answers.splitlines()
    assert again == " {}"
    assert refusal.startswith("ERR ")


def test_the_oracle_turns_json_into_bytes_and_back(java_oracle: Oracle) -> None:
    message = {"topics": ["größe", "b"], "userData": None}
    data = java_oracle.encode_json("ConsumerProtocolSubscription", 0, message)
    assert data == b"\0\0\0\2\0\7gr\xc3\xb6\xc3\x9fe\0\1b\xff\xff\xff\xff"
    assert java_oracle.reencode("ConsumerProtocolSubscription", 0, data) == (data, message)


@pytest.mark.parametrize(
    ("name", "version", "data", "why"),
    [
        ("ApiVersionsRequest", 0, b"x", "left over"),
        ("ApiVersionsRequest", 99, b"\1\1\0", "no version 99"),
        ("MetadataRequest", 1, b"\0", "BufferUnderflow"),
        ("NoSuchRequest", 0, b"", "ClassNotFound"),
    ],
)
def test_the_oracle_rejects_what_kafka_rejects(
    java_oracle: Oracle, name: str, version: int, data: bytes, why: str
) -> None:
    with pytest.raises(RefusedError, match=why):
        java_oracle.reencode(name, version, data)


def test_the_oracle_knows_the_apis(java_oracle: Oracle) -> None:
    produce = java_oracle.apis()[0]
    assert (produce.key, produce.name, produce.min, produce.max) == (0, "Produce", 3, 13)
    assert produce.first_flexible == 9
    assert not produce.is_flexible(8)


def test_an_older_oracle_still_knows_the_controllers_requests() -> None:
    with Oracle("kafka-3.9.2") as oracle:
        assert {"LeaderAndIsr", "UpdateMetadata"} <= {
            api.name for api in oracle.apis() if api.max >= api.min
        }
