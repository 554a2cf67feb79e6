"""Delayed records, dead letters, access and the planner in the console."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from integration.console.conftest import ConsoleOfBroker
from peers.process import wait_until
from support.console import QUIET, get, post

pytestmark = pytest.mark.slow
HOUR_MS = 3_600_000


def read(url: str, path: str) -> Any:
    status, body = get(f"{url}/api/v1/{path}")
    assert status == 200, body
    return json.loads(body)


def changed(url: str, path: str, **body: object) -> str:
    status, found = post(url, path, body)
    assert status == 200, found
    return str(found["message"])


def produce(bootstrap: str, topic: str, headers: dict[str, str], count: int = 1) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for index in range(count):
        producer.produce(topic, b"v%d" % index, headers=dict(headers))
    assert producer.flush(20) == 0


def test_waiting_records_are_listed_by_time_and_cancelled(console: ConsoleOfBroker) -> None:
    url = console.url
    changed(url, "topics", name="due")
    changed(url, "topics", name="later", partitions=1, configs={"penstock.delay.to": "due"})
    at_ms = round(time.time() * 1000) + 2 * HOUR_MS
    produce(console.bootstrap, "later", {"penstock-deliver-at": str(at_ms)}, 3)
    (found,) = read(url, "delay")["delays"]
    assert (found["topic"], found["to"], found["pending"]) == ("later", "due", 3)
    assert (found["due"]["within_day"], found["next_due_ms"]) == (3, at_ms)
    waiting = read(url, "delay/later")["records"]
    assert [each["offset"] for each in waiting] == [0, 1, 2]
    assert changed(url, "delay/later/cancel", positions=["0:1"]) in {"1 cancelled", "1 ordered"}
    assert [each["offset"] for each in read(url, "delay/later")["records"]] == [0, 2]
    status, refused = post(url, "delay/later/cancel", {"positions": ["x"]})
    assert (status, "PARTITION:OFFSET" in refused["error"]) == (400, True)
    page = get(f"{url}/delay/later")[1]
    assert 'value="0:2"' in page
    assert "Waiting in later" in page
    wait_until(lambda: 'href="/delay"' in get(url)[1], 30, "the link to the page")


def test_dead_letters_are_redriven_one_or_all_and_purged(console: ConsoleOfBroker) -> None:
    url = console.url
    changed(url, "topics", name="work", partitions=1)
    changed(url, "topics", name="work.dlq", partitions=1)
    why = {"penstock-error": "no <stock>", "penstock-origin-topic": "work"}
    produce(console.bootstrap, "work.dlq", why, 4)
    found = read(url, "dead-letters/work.dlq")
    assert (found["dead"], found["letters"][0]["error"]) == (4, "no <stock>")
    assert "no &lt;stock&gt;" in get(f"{url}/dead-letters/work.dlq")[1]
    path = "dead-letters/work.dlq/redrive"
    assert changed(url, path, dry_run=True) == "would go: 4 to work"
    assert read(url, "dead-letters/work.dlq")["dead"] == 4
    for positions, left in ((["0:2"], 3), ([], 0)):
        changed(url, path, positions=positions)
        wait_until(lambda: read(url, "jobs")[-1]["state"] == "done", 30, "the redrive")
        assert read(url, "dead-letters/work.dlq")["dead"] == left
    settings = {"bootstrap.servers": console.bootstrap, "group.id": "look", **QUIET}
    consumer = Consumer(settings)
    low, high = consumer.get_watermark_offsets(TopicPartition("work", 0), timeout=20)
    consumer.close()
    assert high - low >= 4
    produce(console.bootstrap, "work.dlq", why, 2)
    purged = changed(url, "dead-letters/work.dlq/purge", confirm="work.dlq")
    assert purged == "purged 2 letters of work.dlq"


def test_users_and_quotas_are_changed_and_no_password_is_stored(console: ConsoleOfBroker) -> None:
    url = console.url
    changed(url, "users", name="bob", password="hush hush")
    changed(url, "quotas", user="bob", limits={"producer_byte_rate": 1024})
    found = read(url, "access")
    assert found["rules"] is None, "the broker has no authorizer"
    assert found["users"] == [{"name": "bob", "mechanisms": ["SCRAM-SHA-512"]}]
    assert found["quotas"][0]["limits"] == {"producer_byte_rate": 1024.0}
    assert "everybody may do everything" in get(f"{url}/access")[1]
    changed(url, "quotas", user="bob", unset=["producer_byte_rate"])
    changed(url, "users/delete", name="bob")
    assert read(url, "access")["users"] == []
    assert "hush" not in get(f"{url}/api/v1/audit")[1]
    status, refused = post(url, "acls", {"principal": "a", "operation": "read", "resource": "x:y"})
    assert (status, "is not a type of resource" in refused["error"]) == (400, True)


@pytest.mark.row("A164")
def test_the_planner_uses_given_figures_or_the_cluster(console: ConsoleOfBroker) -> None:
    url = console.url
    query = "messages_per_second=10000&message_bytes=1024&retention_s=604800&compression=1"
    page = get(f"{url}/plan?{query}")[1]
    assert "21.1 TiB" in page
    assert "is not a number" in get(f"{url}/plan?messages_per_second=x")[1]
    assert "must be from 1 to the number of brokers, 2" in get(f"{url}/plan?{query}&brokers=2")[1]
    seen = get(f"{url}/plan?from_cluster=1&retention_s=60")[1]
    assert "Disk in all" in seen
