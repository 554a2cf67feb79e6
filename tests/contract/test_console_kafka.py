"""The console with an Apache Kafka: pages and REST, as far as Kafka's protocol has the facts."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.process import wait_until
from support.console import QUIET, get, post

pytestmark = [pytest.mark.peer, pytest.mark.slow]


@pytest.fixture(scope="module")
def url(kafka: KafkaCluster) -> Iterator[str]:
    servers = {"bootstrap.servers": kafka.bootstrap, **QUIET}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic("shown", 2, 1), NewTopic("moved", 1, 1)]).values():
        made.result(30)
    producer = Producer(servers)
    for index in range(20):
        producer.produce("shown", f'{{"n": {index}}}', str(index), partition=0)
    assert producer.flush(30) == 0
    for group, topic in (("behind", "shown"), ("to-be-moved", "moved")):
        consumer = Consumer({**servers, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        consumer.close()
    command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
    command += ["--bootstrap-server", kafka.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"ready (http://\S+)", said := process.stdout.readline())
        assert found is not None, said
        wait_until(lambda: get(f"{found[1]}/api/v1/cluster")[0] == 200, 60, "the first look")
        wait_until(lambda: all_is_seen(found[1]), 60, "a look that sees all records and the group")
        yield found[1]
        process.terminate()


def all_is_seen(url: str) -> bool:
    """Kafka reports the end of a log, and a group, only after a while."""
    topics, groups = read(url, "topics?match=shown"), read(url, "groups?match=behind")
    ends = [(each["records"], each["lag"]) for each in topics]
    return ends == [(20, 15)] and [bool(each["lag_seconds"]) for each in groups] == [True]


def read(url: str, path: str) -> Any:
    status, body = get(f"{url}/api/v1/{path}")
    assert status == 200, body
    return json.loads(body)


def test_the_api_shows_what_kafkas_protocol_reports(url: str) -> None:
    (topic,) = read(url, "topics?match=shown")
    assert (topic["records"], topic["groups"], topic["lag"]) == (20, 1, 15)
    (group,) = read(url, "groups?match=behind")
    assert (group["type"], group["lag"]) == ("classic", 15)
    assert group["lag_seconds"] > 0
    detail = read(url, "topics/shown/partitions/0")
    assert (detail["partition"]["end"], detail["segments"]) == (20, [])
    (size,) = detail["sizes"]
    assert size["size_bytes"] > 0
    assert detail["producers_error"] is None
    assert read(url, "group/rebalances?group=behind")["rebalances"] == []
    assert read(url, "group/why?group=behind")["cause"] == "no_members"
    settings = {each["name"]: each for each in read(url, "topics/shown/settings")}
    assert settings["retention.ms"]["value"] == "604800000"


def test_a_search_reads_the_topics_records(url: str) -> None:
    found = read(url, "topics/shown/messages?key=7")
    (message,) = found["messages"]
    assert (message["offset"], found["total"]) == (7, 20)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "controller"),
        ("/topics", "shown"),
        ("/topics/shown", "its broker does not answer"),
        ("/topics/shown/partitions/0", "or it is Apache Kafka"),
        ("/topics/shown/messages", "20 of 20 records searched"),
        ("/groups", "behind"),
        ("/group?group=behind", "none that its coordinator tells of"),
        ("/transactions", "ransactions"),
        ("/reassignments", "oves"),
        ("/access", "ccess"),
    ],
)
def test_pages_state_what_kafka_does_not_report(url: str, path: str, text: str) -> None:
    status, page = get(url + path)
    assert (status, text in page) == (200, True), page[-3000:]


def test_topics_are_created_and_offsets_reset(url: str) -> None:
    assert post(url, "topics", {"name": "made-by-console", "partitions": 1})[0] == 200
    status, found = post(
        url, "group/reset", {"group": "to-be-moved", "to": "beginning", "execute": True}
    )
    assert (status, found["moves"][0]["after"]) == (200, 0)
    status, refused = post(url, "topics", {"name": "made-by-console", "partitions": 1})
    assert (status, "already exists" in refused["error"]) == (409, True), refused
