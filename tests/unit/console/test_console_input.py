"""Bad requests and odd records end in a one-sentence error, not a traceback."""

import asyncio

import msgspec
import pytest

from penstock.advice.snapshot import ClusterSnapshot
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.metadata import ClusterMetadata
from penstock.clock import SystemClock
from penstock.console.app import console
from penstock.console.audit import Audit
from penstock.console.change import nested
from penstock.console.changes.topics import TopicCreate
from penstock.console.jobs import Jobs
from penstock.console.mcp import Tools
from penstock.console.messages.parameters import query_of
from penstock.console.messages.service import Messages
from penstock.console.planning import plan
from penstock.console.reads import broker_settings
from penstock.console.render import time_text
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ConfigError, KafkaError
from penstock.http.access import HttpAccess
from penstock.testing.clock import ManualClock
from penstock.types import BrokerId
from support.console_app import LOCAL, asked

LOOK = ClusterLook(0, ClusterSnapshot(ClusterMetadata("c", BrokerId(1), {}), []), {}, {}, {}, ())


def new_watch() -> ClusterWatch:
    return ClusterWatch(Client([Address("127.0.0.1", 1)], timeout_ms=1), SystemClock())


def test_a_time_outside_the_calendar_is_shown_as_a_number() -> None:
    for at_ms in (1 << 62, -(1 << 62), 253_402_300_800_000):
        assert time_text(at_ms) == f"{at_ms} ms"


@pytest.mark.parametrize("name", ["²", "9" * 5000, "-1", "1"])
def test_a_malformed_broker_id_names_no_broker(name: str) -> None:
    assert asyncio.run(broker_settings(new_watch(), LOOK, {"broker": name})) is None


@pytest.mark.parametrize("text", ["inf", "nan", "-inf"])
def test_a_plan_needs_finite_figures(text: str) -> None:
    given = {"messages_per_second": "1", "message_bytes": "1", "retention_s": "1", "brokers": text}
    found = asyncio.run(plan(new_watch(), LOOK, given))
    assert found.problem is not None
    assert found.problem.startswith("brokers:")


@pytest.mark.parametrize(
    ("path", "body", "reported"),
    [
        ("topics", b'{"name": "\xff"}', "not a JSON object"),
        ("topics", b'{"a":' * 100_000, "not a JSON object"),
        ("topics", b'{"name": "a", "partitions": 99999999999}', "$.partitions"),
        ("topics", b'{"name": "a", "replicas": 99999}', "$.replicas"),
        ("topics/t/partitions", b'{"partitions": 1e30}', "$.partitions"),
        ("topics/t/messages", b'{"timestamp_ms": 9223372036854775808}', "$.timestamp_ms"),
        ("group/reset", b'{"group": "g", "shift": 9223372036854775808}', "$.shift"),
        ("users", b'{"name": "bob", "password": ""}', "password is empty"),
    ],
)
def test_an_invalid_body_is_refused_by_its_field(path: str, body: bytes, reported: str) -> None:
    app = console(new_watch(), HttpAccess(None))
    headers = {**LOCAL, "authorization": "Basic eDp4", "content-type": "application/json"}
    found = asked(app, f"POST /api/v1/{path}", headers, body)
    assert found.status == 400
    assert reported in msgspec.json.decode(found.body)["error"]


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("GET /api/v1/nothing", b"", 404),
        ("PUT /api/v1/topics", b"", 405),
        ("POST /api/v1/topics", b" " * 1_100_000, 413),
    ],
)
def test_a_request_without_a_route_is_refused_as_json(route: str, body: bytes, status: int) -> None:
    headers = {**LOCAL, "authorization": "Basic eDp4", "content-type": "application/json"}
    found = asked(console(new_watch(), HttpAccess(None)), route, headers, body)
    assert (found.status, found.headers["content-type"]) == (status, "application/json")
    assert msgspec.json.decode(found.body)["error"]
    page = asked(console(new_watch(), HttpAccess(None)), "GET /nothing", LOCAL)
    assert page.headers["content-type"].startswith("text/plain")


def test_an_error_about_a_time_lists_the_accepted_formats() -> None:
    with pytest.raises(ConfigError) as reported:
        query_of("t", {"since": "-1h"})
    assert str(reported.value) == "since: '-1h' is not a time: ms since 1970, or ISO-8601"


def test_an_unreachable_cluster_is_a_problem() -> None:
    """Scripts that poll for problems would otherwise see those of the last snapshot: none."""
    clock = ManualClock(1000)
    watch = ClusterWatch(Client([Address("127.0.0.1", 1)], timeout_ms=1), clock)
    watch.last = LOOK
    first_ms = clock.now_ms()
    for _ in range(2):
        watch.failed(KafkaError("nobody listens"))
        clock.advance(5000)
    app = console(watch, HttpAccess(None))
    (found,) = msgspec.json.decode(asked(app, "GET /api/v1/problems", LOCAL).body)
    assert (found["level"], found["check"], found["since_ms"]) == ("error", "no_answer", first_ms)
    assert found["what"] == "the cluster does not answer: nobody listens"
    assert "Nothing is wrong" not in asked(app, "GET /", LOCAL).body.decode()


def test_a_form_field_has_a_value_or_nested_fields() -> None:
    with pytest.raises(ConfigError, match=r"configs has a value, so configs\.x"):
        nested([("configs", "y"), ("configs.x", "1")], TopicCreate)


def test_an_assistant_that_sends_nonsense_does_not_end_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch, clock = new_watch(), SystemClock()
    audit = Audit(None, clock)
    messages = Messages(watch.client, clock)
    tools = Tools(watch, messages, Jobs(clock), audit, user="u", allow_changes=True)

    async def broken() -> None:
        raise RuntimeError

    monkeypatch.setattr(watch, "look", broken)
    for line in (b'{"method": "\xff"}', b"[" * 100_000):
        answer = asyncio.run(tools.answer(line))
        assert answer is not None
        assert msgspec.json.decode(answer)["error"]["code"] == -32700
    call = {"id": 1, "method": "tools/call", "params": {"name": "topics"}}
    answer = asyncio.run(tools.answer(msgspec.json.encode(call)))
    assert answer is not None
    assert msgspec.json.decode(answer)["result"]["isError"]
    call["params"] = {"name": "none", "arguments": {"topic": "t"}}
    answer = asyncio.run(tools.answer(msgspec.json.encode(call)))
    assert answer is not None
    assert msgspec.json.decode(answer)["error"]["code"] == -32602
    assert [(each.change, each.result) for each in audit.lines] == [
        ("topics", "failed"),
        ("none", "there is no such tool"),
    ]
