"""Kafka Connect, unmodified: workers in a group are killed, exactly-once sources, MirrorMaker."""

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, ConfigResource

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import Record
from peers.connect import ConnectCluster, mirror, mirror_by_file
from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import free_ports, last_lines, wait_until
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
WAIT_S = 60
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


def append(file: Path, numbers: range) -> None:
    with file.open("a") as out:
        out.writelines(f"line {number}\n" for number in numbers)


def lines(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def wait(connect: ConnectCluster, condition: Callable[[], bool], what: str) -> None:
    try:
        wait_until(condition, WAIT_S, what)
    except TimeoutError as late:
        reported = "\n".join(last_lines(connect.output(each)) for each in sorted(connect.running))
        raise AssertionError(f"{late}\n{reported}") from late


@pytest.mark.row("A009")
def test_lines_arrive_although_the_worker_that_reads_them_is_killed(tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    append(given, range(100))

    def arrived(count: int) -> bool:
        return out.exists() and set(out.read_text().splitlines()) == set(lines(count))

    with (
        PenstockBroker("--set", "group.initial.rebalance.delay.ms=0") as broker,
        ConnectCluster(broker.bootstrap, 2) as connect,
    ):
        connect.put("read", {"connector.class": SOURCE, "file": given, "topic": "lines"})
        connect.put("write", {"connector.class": SINK, "file": out, "topics": "lines"})
        wait(connect, lambda: arrived(100), "what was there before")
        wait(connect, lambda: connect.runs("read") and connect.runs("write"), "both to run")
        connect.kill(connect.worker_of("read"))
        append(given, range(100, 200))
        wait(connect, lambda: arrived(200), "what was written after the kill")


def test_a_source_is_exactly_once_although_its_worker_and_the_broker_are_killed(
    tmp_path: Path,
) -> None:
    given, once = tmp_path / "given", {"exactly.once.source.support": "enabled"}
    (port,) = free_ports(1)
    with (
        PenstockBroker("--port", str(port), folder=tmp_path / "broker") as broker,
        ConnectCluster(broker.bootstrap, settings=once) as connect,
    ):
        client = LibrdkafkaClient(broker.bootstrap)
        client.create_topic("once", 1)
        client.close()

        def values() -> list[str]:
            return committed(broker.bootstrap, "once", 1, while_open=True)[0]

        append(given, range(1))
        connect.put(
            "read",
            {
                "connector.class": SOURCE,
                "file": given,
                "topic": "once",
                "exactly.once.support": "required",
            },
        )
        wait(connect, lambda: bool(values()), "the first line")
        written = 1
        for step in range(60):
            append(given, range(written, written := written + 10))
            time.sleep(0.05)  # so that there are many transactions
            if step in {15, 35}:
                killed = connect if step == 15 else broker
                killed.kill(0)
                killed.start(0)
        wait(connect, lambda: len(values()) >= written, "all lines")
        assert values() == lines(written)


def test_a_topic_of_kafka_is_mirrored_with_its_settings_and_the_offsets_of_its_groups(
    kafka: KafkaCluster, penstock: PenstockBroker, topic: str, tmp_path: Path
) -> None:
    copy, group = f"source.{topic}", f"readers of {topic}"
    client = LibrdkafkaClient(kafka.bootstrap)
    client.create_topic(topic, 2, {"max.message.bytes": "123456"})
    client.produce(topic, [Record(b"%d" % each, partition=each % 2) for each in range(500)])
    client.close()
    reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    reader.commit(offsets=[Position(topic, each, 250) for each in (0, 1)], asynchronous=False)
    reader.close()
    admin = AdminClient({"bootstrap.servers": penstock.bootstrap})

    def offsets() -> set[tuple[int, int]]:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        reported = asked[group].result(10).topic_partitions
        return {(each.partition, each.offset) for each in reported if each.topic == copy}

    copying = mirror(kafka.bootstrap, penstock.bootstrap, topic, tmp_path)
    copying.start()
    try:
        copying.wait_until(lambda: offsets() == {(0, 250), (1, 250)}, WAIT_S)
    finally:
        copying.kill()
    assert committed(penstock.bootstrap, copy, 2) == committed(kafka.bootstrap, topic, 2)
    resource = ConfigResource(ConfigResource.Type.TOPIC, copy)
    reported = admin.describe_configs([resource])[resource].result(10)
    assert reported["max.message.bytes"].value == "123456"
    assert "ERROR" not in copying.output.read_text()


def are_there(bootstrap: str, topic: str, count: int) -> bool:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "log_level": 0})
    try:
        return reader.get_watermark_offsets(Position(topic, 0), timeout=10) == (0, count)
    except KafkaException:  # the topic is not there yet
        return False
    finally:
        reader.close()


def test_the_file_on_the_page_mirrors_a_topic_there_and_back(
    kafka: KafkaCluster, penstock: PenstockBroker, topic: str, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"(?s)```properties\n(clusters = .*?)```", page)
    for on_page, ours in (("kafka1:9092", kafka.bootstrap), ("penstock1:9092", penstock.bootstrap)):
        assert on_page in text
        text = text.replace(on_page, ours)
    there, back = f"{topic}-there", f"{topic}-back"
    for name, cluster, other, settings in (
        (there, kafka, penstock, text),
        (back, penstock, kafka, text.replace("kafka->penstock", "penstock->kafka")),
    ):
        client = LibrdkafkaClient(cluster.bootstrap)
        client.create_topic(name, 1)
        client.produce(name, [Record(b"%d" % each) for each in range(100)])
        client.close()
        settings = settings.replace("topics = .*", f"topics = {name}")
        copying = mirror_by_file(settings, tmp_path / name)
        copying.start()

        try:
            copying.wait_until(partial(are_there, other.bootstrap, name, 100), WAIT_S)
        finally:
            copying.kill()
        assert committed(other.bootstrap, name, 1) == committed(cluster.bootstrap, name, 1)
        assert "ERROR" not in copying.output.read_text()
