"""Changes made with the console's REST API and forms, as real clients see them."""

import json
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from integration.console.conftest import ConsoleOfBroker
from peers.process import wait_until
from support.console import GROUP, QUIET, get, post, sent

pytestmark = pytest.mark.slow


def read(url: str, path: str) -> Any:
    status, body = get(f"{url}/api/v1/{path}")
    assert status == 200, body
    return json.loads(body)


def test_a_topic_is_created_configured_extended_cloned_emptied_and_deleted(
    console: ConsoleOfBroker,
) -> None:
    url, admin = console.url, AdminClient({"bootstrap.servers": console.bootstrap, **QUIET})

    def change(path: str, **body: object) -> str:
        status, found = post(url, path, body)
        assert status == 200, found
        return str(found["message"])

    wanted = {"retention.ms": "1000000"}
    assert change("topics", name="made", partitions=2, configs=wanted) == "created made"
    assert len(admin.list_topics(timeout=10).topics["made"].partitions) == 2
    (setting,) = [
        each for each in read(url, "topics/made/settings") if each["name"] == "retention.ms"
    ]
    assert (setting["value"], setting["default"]) == ("1000000", "604800000")
    assert (setting["source"], setting["is_own"]) == ("DYNAMIC_TOPIC_CONFIG", True)
    assert setting["doc"]
    change("topics/made/settings", configs={"cleanup.policy": "compact"}, unset=["retention.ms"])
    resource = ConfigResource(ResourceType.TOPIC, "made")
    configs = admin.describe_configs([resource])[resource].result(10)
    assert configs["cleanup.policy"].value == "compact"
    assert configs["retention.ms"].value == "604800000"
    change("topics/made/settings", unset=["cleanup.policy"])
    assert change("topics/made/partitions", partitions=3) == "made has 3 partitions"

    producer = Producer({"bootstrap.servers": console.bootstrap, **QUIET})
    for index in range(30):
        producer.produce("made", b"v", partition=index % 3)
    assert producer.flush(20) == 0
    assert "copying made" in change("topics/made/clone", target="copy", records=True)

    def copied() -> bool:
        (job,) = read(url, "jobs")
        assert job["state"] != "failed", job["message"]
        return bool(job["state"] == "done")

    wait_until(copied, 30, "the copy")
    assert read(url, "jobs")[0]["message"] == "created copy like made, with 30 records"
    assert change("topics/made/empty", confirm="made") == "deleted 30 records of made"
    assert change("topics/made/delete", confirm="made") == "deleted made"
    assert "made" not in admin.list_topics(timeout=10).topics
    names = [each["change"] for each in read(url, "audit")]
    assert "topic.create" in names
    assert names[-1] == "topic.delete"
    assert "topic.clone" in get(f"{url}/audit")[1]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("topics", {}, 400, "Object missing required field `name`"),
        ("topics", {"name": "a", "nom": 1}, 400, "nom is not one of"),
        ("topics", [], 400, "the body is not a JSON object"),
        ("topics", {"name": "a/b"}, 409, "INVALID_TOPIC_EXCEPTION"),
        ("topics", {"name": "orders"}, 409, "TOPIC_ALREADY_EXISTS"),
        ("topics", {"name": "zero", "partitions": 0}, 409, "INVALID_PARTITIONS"),
        ("topics", {"name": "zero", "replicas": 0}, 409, "INVALID_REPLICATION_FACTOR"),
        ("topics/orders/delete", {"confirm": "order"}, 400, "confirm must be the name: orders"),
        ("topics/orders/settings", {}, 400, "nothing to change"),
        ("topics/none/empty", {"confirm": "none"}, 409, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("group/reset", {"group": GROUP}, 400, "give one of to, shift, offsets"),
        ("group/reset", {"group": GROUP, "to": "x"}, 400, "'x' is not an offset"),
        ("group/reset", {"group": GROUP, "offsets": {"orders": 1}}, 400, "TOPIC:PARTITION"),
        ("group/remove-member", {"group": GROUP, "member": "m"}, 400, "has no member m"),
        (
            "transactions/abort",
            {"topic": "orders", "partition": 0, "start_offset": 5},
            400,
            "orders-0 has no open transaction from 5 on",
        ),
        ("reassignments/cancel", {"topic": "orders", "partition": 0}, 400, "is not being moved"),
    ],
)
def test_a_refused_change_has_a_reason(
    console: ConsoleOfBroker, path: str, body: object, status: int, error: str
) -> None:
    found, answer = post(console.url, path, body)
    assert (found, error in answer["error"]) == (status, True), answer
    if isinstance(body, dict):
        assert read(console.url, "audit")[-1]["result"] == answer["error"]


def test_a_group_is_reset_after_a_preview_of_the_new_offsets(console: ConsoleOfBroker) -> None:
    url, admin = console.url, AdminClient({"bootstrap.servers": console.bootstrap, **QUIET})

    def committed() -> int:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
        (found,) = asked[GROUP].result(10).topic_partitions
        return int(found.offset)

    page = get(f"{url}/group/reset?group={quote(GROUP, safe='')}")[1]
    assert 'name="offsets.orders:0" value="10"' in page
    status, plan = post(url, "group/reset", {"group": GROUP, "to": "-100"})
    assert (status, plan["executed"], plan["warning"]) == (200, False, None)
    move = {"topic": "orders", "partition": 0, "before": 10, "after": 1900, "wanted": 1900}
    assert plan["moves"] == [{**move, "lag": 100}]
    assert committed() == 10, "nothing was changed"
    offsets = {"orders:0": 5000}
    plan = post(url, "group/reset", {"group": GROUP, "offsets": offsets, "execute": True})[1]
    assert (plan["executed"], plan["moves"][0]["after"]) == (True, 2000)
    assert committed() == 2000
    consumer = Consumer({"bootstrap.servers": console.bootstrap, "group.id": "gone", **QUIET})
    consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    consumer.close()
    assert post(url, "group/delete", {"group": "gone", "confirm": "gone"})[0] == 200


def test_a_member_is_removed(console: ConsoleOfBroker) -> None:
    settings = {"group.id": "live", "auto.offset.reset": "earliest", **QUIET}
    consumer = Consumer({"bootstrap.servers": console.bootstrap, **settings})
    consumer.subscribe(["orders"])
    wait_until(lambda: bool(consumer.assignment() or consumer.poll(0.2)), 30, "an assignment")
    warning = post(console.url, "group/reset", {"group": "live", "to": "end", "topics": ["orders"]})
    assert "stop its consumers first" in warning[1]["warning"]
    wait_until(lambda: bool(read(console.url, "group?group=live")["members"]), 30, "a look")
    (member,) = read(console.url, "group?group=live")["members"]
    status, found = post(
        console.url, "group/remove-member", {"group": "live", "member": member["id"]}
    )
    assert status == 200, found
    members = read(console.url, "group?group=live")["members"]
    assert member["id"] not in [each["id"] for each in members], "it may join again, as another"
    consumer.close()


def test_a_form_is_answered_with_a_fragment_or_the_next_page(console: ConsoleOfBroker) -> None:
    token = read(console.url, "session")["csrf_token"]
    headers = {
        "X-CSRF-Token": token,
        "HX-Request": "true",
        "Content-Type": "application/x-www-form-urlencoded",
    }

    def submitted(path: str, **fields: str) -> tuple[int, str]:
        body = urlencode(fields).encode()
        return sent(Request(f"{console.url}/api/v1/{path}", body, headers))

    status, html = submitted("topics", name="<i>")
    assert (status, html.startswith('<p class="refused"'), "<i>" in html) == (409, True, False)
    given = {"name": "formed", "partitions": "2", "configs.retention.ms": "5000", "replicas": ""}
    assert submitted("topics", **given)[0] == 200
    (setting,) = [
        each
        for each in read(console.url, "topics/formed/settings")
        if each["name"] == "retention.ms"
    ]
    assert setting["value"] == "5000"
    status, html = submitted("group/reset", group=GROUP, to="beginning")
    assert (status, "Reset to these offsets" in html) == (200, True)
    for page in ("topics/formed", "topics/formed/settings", "transactions", "reassignments"):
        assert get(f"{console.url}/{page}")[0] == 200
    assert get(f"{console.url}/brokers/1")[0] == 200
    assert get(f"{console.url}/topics/none/settings")[0] == 404
