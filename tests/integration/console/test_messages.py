"""Messages in the console of a real broker: search, pages, export, tail, produce, import, masks."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Producer

from peers.process import wait_until
from penstock.http.access import token_hash
from penstock.testing.broker import EmbeddedBroker

pytestmark = pytest.mark.slow

EVIL = b"<script>alert(1)</script>"
COUNT = 3000


class Console:
    """A console in a separate process, called as one of its users."""

    def __init__(self, url: str, bootstrap: str) -> None:
        self.url, self.bootstrap = url, bootstrap

    def ask(
        self, path: str, role: str = "operator", body: bytes | None = None, kind: str = ""
    ) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {role}", "Content-Type": kind or "application/json"}
        try:
            with urlopen(Request(self.url + path, body, headers), timeout=30) as response:
                return response.status, response.read()
        except HTTPError as error:
            return error.code, error.read()

    def api(self, path: str, role: str = "operator", body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        status, found = self.ask(f"/api/v1/topics/{path}", role, data)
        assert status == 200, found
        return json.loads(found)

    def search(self, topic: str, role: str = "operator", **given: object) -> dict[str, Any]:
        """All pages of a search as one."""
        found = self.api(f"{topic}/messages?{urlencode(given)}", role)
        messages = found["messages"]
        while found["cursor"] is not None:
            paging = {"cursor": found["cursor"], "limit": given.get("limit", 50)}
            found = self.api(f"{topic}/messages?{urlencode(paging)}", role)
            messages += found["messages"]
        return {**found, "messages": messages}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    users: Path = tmp_path_factory.mktemp("console") / "users"
    users.write_text(
        "".join(f"{each} {each} {token_hash(each)}\n" for each in ("viewer", "operator"))
    )
    with EmbeddedBroker() as broker:
        broker.create_topic("orders", 3)
        for name in ("odd", "copy", "made", "live"):
            broker.create_topic(name, 1)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "log_level": 0, "compression.type": "zstd"}
        )
        for number in range(COUNT):
            value = json.dumps({"n": number, "card": f"card-{number}", "pad": "x" * 200})
            key = f"key-{number % 100}"
            producer.produce("orders", value, key, headers={"trace": f"t{number}"})
        producer.produce("odd", EVIL, EVIL, headers={EVIL.decode(): EVIL})
        producer.produce("odd", None, None)
        producer.produce("odd", b"", b"")
        producer.produce("odd", b"\x82\xa1a\x01\xa1b\x02", b"\xff\xfe")
        producer.produce("odd", b"<a><b/></a>", b"xml")
        producer.produce("odd", b"long " * 100_000, b"long")
        assert producer.flush(20) == 0
        command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-server", broker.bootstrap, "--users", str(users)]
        command += ["--mask", "orders:value.card", "--mask", "header.trace"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            ready = re.search(r"ready (http://\S+)", said := process.stdout.readline())
            assert ready is not None, said
            found = Console(ready[1], broker.bootstrap)
            wait_until(lambda: found.ask("/api/v1/cluster")[0] == 200, 20, "the first look")
            yield found
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


def test_a_search_pages_through_all_partitions_by_time(console: Console) -> None:
    found = console.search("orders", limit=1000)
    assert (found["matches"], found["scanned"], found["total"]) == (COUNT, COUNT, COUNT)
    times = [each["timestamp_ms"] for each in found["messages"]]
    assert times == sorted(times, reverse=True)
    assert len({each["partition"] for each in found["messages"]}) == 3
    oldest = console.search("orders", limit=1000, order="oldest")
    ids = [(each["partition"], each["offset"]) for each in oldest["messages"]]
    assert sorted(ids) == sorted((each["partition"], each["offset"]) for each in found["messages"])


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"text": "card-77"}, 11),
        ({"text": "card-77", "place": "key"}, 0),
        ({"text": "t2999", "place": "headers"}, 1),
        ({"key": "key-7"}, 30),
        ({"key": "key-7", "expression": "value.n < 1000"}, 10),
        ({"expression": "value.n % 1000 == 5 && partition >= 0"}, 3),
        ({"key": "none"}, 0),
        ({"since": "2100-01-01"}, 0),
        ({"until": "2001-01-01T00:00"}, 0),
        ({"start": 10, "end": 20}, 30),
    ],
)
def test_a_search_finds_exactly_the_matching_records(
    console: Console, given: dict[str, Any], count: int
) -> None:
    found = console.search("orders", limit=7, **given)
    assert (len(found["messages"]), found["matches"]) == (count, count)
    counted = console.search("orders", limit=0, **given)
    assert (counted["messages"], counted["matches"]) == ([], count)


def test_a_search_reports_the_records_that_its_expression_does_not_fit(console: Console) -> None:
    search = "orders/messages?expression=value.amout%3E5"
    found = console.api(search)
    assert (found["messages"], found["matches"]) == ([], 0)
    assert re.search(r"failed on [0-9]+ records: orders-", found["warning"])
    assert "amout" in found["warning"]
    status, page = console.ask(f"/topics/{search}")
    assert (status, b"failed on" in page) == (200, True)
    assert console.api("orders/messages?key=key-7")["warning"] == ""


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("none/messages", 404, "there is no topic none"),
        ("orders/messages?partition=9", 404, "there is no partition 9 of orders"),
        ("orders/messages?limit=x", 400, "limit 'x' is not a number from 0 to 1000"),
        ("orders/messages?x=1", 400, "x is not a parameter"),
        ("orders/messages?cursor=abc", 400, "cursor: it is not one that a search returned"),
        ("orders/messages?expression=1%2B", 400, "is not CEL"),
        ("orders/messages?expression=nothing", 400, "there are topic, partition"),
        ("orders/messages?since=yesterday", 400, "since: 'yesterday' is not a time"),
        ("orders/messages/0/999999", 404, "there is no record 999999 in orders-0"),
        ("orders/messages/x/0", 400, "partition 'x' is not a number"),
        ("odd/messages/0/1/value", 404, "the value is null"),
        ("orders/export?format=xls", 400, "format 'xls' is not one of jsonl, csv"),
        ("orders/tail?after=abc", 400, "after: it is not the id of an event"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(
    console: Console, path: str, status: int, error: str
) -> None:
    found, body = console.ask(f"/api/v1/topics/{path}")
    assert found == status, body
    assert error in json.loads(body)["error"]


def test_records_are_decoded_and_null_is_not_empty(console: Console) -> None:
    found = console.search("odd", order="oldest")["messages"]
    assert [each["value"]["format"] for each in found] == [
        "xml",
        "null",
        "empty",
        "msgpack",
        "xml",
        "text",
    ]
    assert [each["key"]["format"] for each in found][:4] == ["xml", "null", "empty", "hex"]
    assert found[3]["value"]["value"] == {"a": 1, "b": 2}
    assert found[3]["key"]["value"] == "fffe"
    assert found[5]["value"]["is_cut"]
    assert len(found[5]["value"]["value"]) < 10_000
    assert console.ask("/api/v1/topics/odd/messages/0/5/value")[1] == b"long " * 100_000
    detail = console.api("orders/messages/0/0")
    assert detail["batch"]["compression"] == "zstd"
    assert detail["batch"]["base_offset"] == 0
    assert detail["message"]["value"]["value"]["pad"] == "x" * 200


def test_pages_escape_records(console: Console) -> None:
    for path in ("messages", "messages/0/0"):
        status, page = console.ask(f"/topics/odd/{path}")
        assert status == 200, page
        assert EVIL not in page
        assert b"&lt;script&gt;" in page
        assert b"style=" not in page
    listed = console.ask("/topics/odd/messages")[1].decode()
    assert '<span class="tag">null</span>' in listed
    assert '<span class="tag">empty</span>' in listed
    assert "488.3 KiB" in listed
    assert console.ask("/topics/none/messages")[0] == 404
    found = console.ask("/topics/orders/messages?text=card-77&limit=3")[1].decode()
    assert "3 found so far" in found
    (more,) = re.findall(r'data-more="([^"]+)"', found)
    assert 'value="card-77"' in console.ask(more.replace("&amp;", "&"))[1].decode()


def test_an_export_can_be_imported(console: Console) -> None:
    lines = console.ask("/api/v1/topics/odd/export")[1]
    status, body = console.ask("/api/v1/topics/copy/import?format=jsonl", body=lines)
    assert (status, json.loads(body)) == (200, {"written": 6, "error": None})

    def contents(topic: str) -> list[object]:
        found = console.search(topic, order="oldest")["messages"]
        return [(each["key"], each["value"], each["headers"]) for each in found]

    assert contents("copy") == contents("odd")
    offset = console.search("copy")["messages"][0]["offset"]
    batch = console.api(f"copy/messages/0/{offset}")["batch"]
    assert batch["producer_id"] >= 0, "a retry must not write it twice"
    table = console.ask("/api/v1/topics/odd/export?format=csv&limit=2")[1].decode().splitlines()
    assert table[0].startswith("topic,partition,offset,")
    assert table[2].endswith(",,null,,null,")
    status, body = console.ask("/api/v1/topics/copy/import?format=jsonl", body=b'{"valu": 1}\n')
    assert status == 400
    assert b"nothing was written: line 1" in body


def test_a_message_is_written_and_tombstones_are_explicit(console: Console) -> None:
    for given, value in (
        ({"key": "k", "value": "v"}, "v"),
        ({"key": "k"}, None),
        ({"key": "k", "value_encoding": "text"}, ""),
        ({"value": "00ff", "value_encoding": "hex", "partition": 0}, "00ff"),
    ):
        body = {**given, "headers": [{"name": "h", "value": "x"}]}
        written = console.api("made/messages", body=body)
        detail = console.api(f"made/messages/0/{written['offset']}")
        assert detail["batch"]["producer_id"] >= 0, "a retry must not write it twice"
        found = detail["message"]
        assert found["value"]["value"] == value
        assert found["headers"][0]["name"] == "h"
    late = json.dumps({"value": "v", "timestamp_ms": 1 << 70}).encode()
    status, body_ = console.ask("/api/v1/topics/made/messages", body=late)
    assert (status, b"timestamp_ms" in body_) == (400, True), body_
    status, body_ = console.ask("/api/v1/topics/made/messages", "viewer", b"{}")
    assert status == 403, body_
    status, body_ = console.ask(
        "/api/v1/topics/made/messages", body=b'{"value": "v", "partition": 7}'
    )
    assert (status, json.loads(body_)) == (400, {"error": "partition 7: made has 1"})


def test_viewers_neither_see_nor_find_masked_values(console: Console) -> None:
    seen = console.search("orders", "viewer", key="key-7", limit=1000)["messages"]
    assert {each["value"]["value"]["card"] for each in seen} == {"***"}
    assert {each["headers"][0]["part"]["value"] for each in seen} == {"***"}
    for given in ({"text": "card-77"}, {"text": "t2999"}, {"expression": "value.card == 'card-7'"}):
        assert console.search("orders", "viewer", **given)["matches"] == 0
        assert console.search("orders", **given)["matches"] > 0
    place = f"{seen[0]['partition']}/{seen[0]['offset']}"
    for path in (f"messages/{place}", f"messages/{place}/value", "export?limit=5"):
        assert b"card-" not in console.ask(f"/api/v1/topics/orders/{path}", "viewer")[1]
    assert b"card-" not in console.ask(f"/topics/orders/messages/{place}", "viewer")[1]


def test_a_tail_shows_new_messages_at_once_and_resumes(console: Console) -> None:
    producer = Producer({"bootstrap.servers": console.bootstrap, "log_level": 0, "linger.ms": 0})

    def opened(after: str = "") -> Any:
        path = f"/api/v1/topics/live/tail?text=tailed&after={quote(after)}"
        headers = {"Authorization": "Bearer operator"}
        return urlopen(Request(console.url + path, None, headers), timeout=20)

    def event(stream: Any) -> tuple[str, Any]:
        number = stream.readline().decode().removeprefix("id: ").strip()
        data = stream.readline().decode().removeprefix("data: ")
        assert stream.readline() == b"\n"
        return number, json.loads(data)

    with opened() as stream:
        assert event(stream)[1] is None
        last = ""
        for number in range(20):
            producer.produce("live", f"tailed {number}")
            producer.poll(0)
            last, found = event(stream)
            assert [each["value"]["value"] for each in found["messages"]] == [f"tailed {number}"]
    for number in range(3):
        producer.produce("live", f"tailed while paused {number}")
    assert producer.flush(20) == 0
    with opened(last) as stream:
        assert event(stream)[1] is None
        found = event(stream)[1]["messages"]
        while len(found) < 3:
            found += event(stream)[1]["messages"]
        assert [each["value"]["value"][-1] for each in found] == ["0", "1", "2"]


def test_a_tail_reports_errors_in_its_expression(console: Console) -> None:
    path = f"/api/v1/topics/live/tail?expression={quote('valu.a == 1')}"
    headers = {"Authorization": "Bearer operator"}
    with urlopen(Request(console.url + path, None, headers), timeout=20) as stream:
        assert stream.readline().startswith(b"id: ")
        console.api("live/messages", body={"value": "v"})
        rest = stream.read().decode()
    assert "event: failed" in rest
    assert "there are topic, partition, offset" in rest


def test_the_api_describes_these_routes(console: Console) -> None:
    document = json.loads(console.ask("/api/v1/openapi.json")[1])
    assert {"get", "post"} == set(document["paths"]["/api/v1/topics/{topic}/messages"])
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document))
    assert set(names) <= document["components"]["schemas"].keys()
