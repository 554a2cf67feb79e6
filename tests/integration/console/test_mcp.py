"""`penstock mcp` as an assistant uses it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.testing.broker import EmbeddedBroker
from support.console import QUIET

pytestmark = pytest.mark.slow


class Assistant:
    """Sends requests and reads responses."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._last = process, 0

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        found = self.read()
        assert found["id"] == self._last
        return found

    def call(self, name: str, /, **arguments: object) -> tuple[bool, Any]:
        """Whether the call worked, and its result."""
        found = self.ask("tools/call", name=name, arguments=arguments)["result"]
        (content,) = found["content"]
        text = content["text"]
        return not found["isError"], text if found["isError"] else json.loads(text)

    def send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(message if isinstance(message, str) else json.dumps(message))
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def assistant(bootstrap: str, *options: str) -> Iterator[Assistant]:
    command = [sys.executable, "-m", "penstock", "mcp", "--bootstrap-server", bootstrap]
    process = subprocess.Popen(
        [*command, "--log-level", "error", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Assistant(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


def test_an_assistant_reads_and_changes_only_what_it_may(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        producer.produce("orders", b'{"id": 7}', b"k")
        producer.produce("orders", b'{"id": 8}', b"k")
        assert producer.flush(20) == 0
        with assistant(broker.bootstrap) as reader:
            hello = reader.ask("initialize", protocolVersion="2025-06-18")["result"]
            assert hello["serverInfo"]["name"] == "penstock"
            reader.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            tools = {each["name"]: each for each in reader.ask("tools/list")["result"]["tools"]}
            assert {"cluster", "topics", "messages", "group_why", "problems"} <= set(tools)
            assert "topic_create" not in tools
            assert all(each["annotations"]["readOnlyHint"] for each in tools.values())
            worked, topics = reader.call("topics")
            assert worked
            assert "orders" in [each["name"] for each in topics]
            worked, found = reader.call("messages", topic="orders", limit=5)
            assert worked, found
            assert "7" in json.dumps(found)
            worked, first = reader.call("messages", topic="orders", limit=1)
            assert worked, first
            worked, rest = reader.call("messages", topic="orders", cursor=first["cursor"])
            assert worked, rest
            offsets = [each["offset"] for page in (first, rest) for each in page["messages"]]
            assert (offsets, rest["cursor"]) == ([1, 0], None)
            worked, why = reader.call("messages", topic="orders", cursor="x", key="k")
            assert (worked, why) == (
                False,
                "cursor goes without key: it has the whole search in it",
            )
            assert reader.call("topics_topic_settings", topic="none") == (
                False,
                "there is no none",
            )
            refused = reader.ask("tools/call", name="topic_create", arguments={"name": "a"})
            assert refused["error"]["message"] == "there is no tool topic_create"
            assert reader.ask("none")["error"]["code"] == -32601
            reader.send("{")
            assert reader.read()["error"]["code"] == -32700
        with assistant(broker.bootstrap, "--allow-changes", "--audit-log", str(log)) as admin:
            tools = {each["name"]: each for each in admin.ask("tools/list")["result"]["tools"]}
            assert tools["topic_create"]["inputSchema"]["required"] == ["name"]
            assert tools["topic_create"]["annotations"]["destructiveHint"]
            assert admin.call("topic_create", name="made", partitions=2)[0]
            assert not admin.call("topic_create", nom="made")[0]
            assert "made" in [each["name"] for each in admin.call("topics")[1]]
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    assert [(each["change"], each["result"]) for each in lines[:2]] == [
        ("topic_create", "ok"),
        ("topic_create", "nom is not one of configs, name, partitions, replicas, validate_only"),
    ]
