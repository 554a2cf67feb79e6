"""What the console shows of a real broker's partitions and groups."""

import json
import re
import time
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from peers.process import wait_until
from support.console import GROUP, QUIET, get

pytestmark = pytest.mark.slow


def read(url: str, path: str) -> object:
    status, body = get(f"{url}/api/v1/{path}")
    assert status == 200, body
    return json.loads(body)


def test_lag_is_shown_in_seconds_however_short(url: str, bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    written_ms = round(time.time() * 1000) - 128_000
    producer.produce("short", b"x", timestamp=written_ms)
    producer.produce("short", b"y")
    assert producer.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "few",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe(["short"])
    wait_until(lambda: consumer.poll(0.2) is not None, 20, "the first record")
    consumer.commit(offsets=[TopicPartition("short", 0, 0)], asynchronous=False)

    def seen() -> bool:
        groups = read(url, "groups?match=few")
        assert isinstance(groups, list)
        return bool(groups) and groups[0]["lag_seconds"] is not None and groups[0]["lag"] == 2

    wait_until(seen, 20, "a look at the group")
    detail = read(url, "group?group=few")
    assert isinstance(detail, dict)
    assert 128 <= detail["group"]["lag_seconds"] < 240
    (offset,) = detail["offsets"]
    assert 128 <= offset["lag_seconds"] < 240
    page = get(f"{url}/group?group=few")[1]
    assert re.search(r"<td>1[2-9]\d s</td>", page)
    rebalances = read(url, "group/rebalances?group=few")
    assert isinstance(rebalances, dict)
    assert rebalances["rebalances"][-1]["members"] == 1
    assert rebalances["rebalances"][-1]["reason"] in page.replace("&#39;", "'")
    consumer.close()


def test_a_partition_shows_its_segments_and_producers(url: str, bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "open", **QUIET}
    producer = Producer(settings)
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=0)
    assert producer.flush(20) == 0
    found = read(url, "topics/orders/partitions/0")
    assert isinstance(found, dict)
    (segment,) = found["segments"]
    assert (segment["base_offset"], segment["next_offset"], segment["is_active"]) == (0, 2001, True)
    names = {each["name"]: each["size_bytes"] for each in segment["files"]}
    assert names["00000000000000000000.log"] == segment["size_bytes"] > 0
    (size,) = found["sizes"]
    assert size["broker"] == 1
    (writer,) = [each for each in found["producers"] if each["transaction_start"] is not None]
    assert writer["transaction_start"] == 2000
    page = get(f"{url}/topics/orders/partitions/0")[1]
    assert "since offset 2000" in page
    assert "00000000000000000000.log" in page
    producer.abort_transaction(20)
    for path, status in (("none/partitions/0", 404), ("orders/partitions/7", 404)):
        assert get(f"{url}/api/v1/topics/{path}")[0] == status
    assert get(f"{url}/api/v1/topics/orders/partitions/x")[0] == 400
    assert get(f"{url}/topics/orders/partitions/7")[0] == 404


def test_lists_are_sorted_and_limited(url: str) -> None:
    topics = read(url, "topics?sort=-records&page=1")
    assert isinstance(topics, list)
    assert topics[0]["name"] == "orders"
    assert get(f"{url}/api/v1/topics?sort=nothing")[0] == 400
    assert get(f"{url}/topics?sort=nothing")[0] == 400
    page = get(f"{url}/topics?sort=-records")[1]
    assert 'aria-sort="descending"' in page


def test_the_planner_has_an_api(url: str) -> None:
    figures = "messages_per_second=1000&message_bytes=1024&retention_s=604800"
    plan = read(url, f"plan?{figures}")
    assert isinstance(plan, dict)
    assert plan["need"]
    assert get(f"{url}/api/v1/plan?message_bytes=x")[0] == 400
    status, body = get(f"{url}/api/v1/plan?message_bytes=5")
    assert (status, "messages_per_second" in body) == (400, True)


def test_the_timeline_begins_empty(url: str) -> None:
    assert read(url, "timeline") == []
    assert "nothing has changed since the console started" in get(url)[1]


def test_a_group_without_rebalances_says_so(url: str) -> None:
    name = quote(GROUP, safe="")
    found = read(url, f"group/rebalances?group={name}")
    assert isinstance(found, dict)
    assert found["rebalances"] == []
    assert read(url, f"group/in-flight?group={name}") == []
    assert get(f"{url}/api/v1/group/rebalances?group=none")[0] == 404
