"""The REST API answers any request as its OpenAPI document says, and never with a server error."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.applications import Starlette

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.api import described
from penstock.console.app import console
from penstock.console.messages.service import Messages
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess
from penstock.testing.broker import EmbeddedBroker
from support.console import QUIET
from support.console_app import LOCAL, Answer, answered

pytestmark = pytest.mark.slow

DOCUMENT = described()
OPERATIONS = sorted(
    (method, path)
    for path, operations in DOCUMENT["paths"].items()
    for method in operations
    if not path.endswith("/tail")  # it never ends; test_tail_session reads it
)
NAMES = ("orders", "orders.dlq", "billing", "none", "0", "1", "")
WORDS = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))
SMALL = st.one_of(
    st.integers(-1, 3), st.sampled_from([-(1 << 63), 1 << 31, (1 << 63) - 1, 1 << 64])
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), SMALL, WORDS, st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(WORDS, inner, max_size=2)),
    max_leaves=4,
)


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that mostly fit the schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return values(DOCUMENT["components"]["schemas"][name])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    match schema.get("type"):
        case "string":
            return WORDS
        case "integer":
            return SMALL
        case "number":
            return st.one_of(SMALL, st.floats(allow_nan=False))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(values(schema.get("items", {})), max_size=3)
        case "object" if "properties" in schema:
            fields = {name: values(each) for name, each in schema["properties"].items()}
            needed = {name: fields.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional=fields)
        case "object":
            return st.dictionaries(
                WORDS, values(schema.get("additionalProperties") or {}), max_size=2
            )
        case _:
            return ANYTHING


@st.composite
def requests(draw: st.DrawFn, method: str, path: str) -> tuple[str, bytes]:
    """A request line such as `GET /api/v1/topics?match=x`, and a body."""
    operation = DOCUMENT["paths"][path][method]
    query: list[tuple[str, str]] = []
    for each in operation["parameters"]:
        value = str(draw(st.one_of(values(each["schema"]), WORDS)))
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", value.replace("/", "") or "orders")
        elif each.get("required") or draw(st.booleans()):
            query.append((each["name"], value))
    if draw(st.integers(0, 9)) == 0:
        query.append((draw(WORDS), "x"))
    body = b""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        body = json.dumps(draw(st.one_of(values(schema), values(schema), ANYTHING))).encode()
    elif content:
        body = draw(st.binary(max_size=40))
    path = path.replace("?", "").replace("#", "")
    return f"{method.upper()} {path}" + (f"?{urlencode(query)}" if query else ""), body


class Served:
    """The application, with a broker, in one event loop."""

    def __init__(self, app: Starlette, runner: asyncio.Runner) -> None:
        self._app, self._runner = app, runner
        self._token = json.loads(self.asked("GET /api/v1/session").body)["csrf_token"]

    _token = ""

    def asked(self, line: str, body: bytes = b"") -> Answer:
        headers = {**LOCAL, "x-csrf-token": self._token, "content-type": "application/json"}
        return self._runner.run(answered(self._app, line, headers, body))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with EmbeddedBroker(settings={"offsets.topic.num.partitions": "1"}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap, **QUIET}
        producer = Producer(servers)
        for topic in ("orders", "orders.dlq"):
            producer.produce(topic, b'{"a": 1}', b"k", headers={"h": b"v"})
        assert producer.flush(20) == 0
        consumer = Consumer({**servers, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        with asyncio.Runner() as runner:
            client = Client(parse_addresses(broker.bootstrap), timeout_ms=5000)
            watch = ClusterWatch(client, SystemClock())
            runner.run(watch.look())
            messages = Messages(client, SystemClock())
            yield Served(console(watch, HttpAccess(None), messages=messages), runner)
            runner.run(messages.client.close())
            runner.run(client.close())


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_responses_match_the_document(served: Served, method: str, path: str) -> None:
    declared = DOCUMENT["paths"][path][method]["responses"]

    @settings(
        max_examples=1 if path.endswith("/why") else 12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(requests(method, path))
    def check(asked: tuple[str, bytes]) -> None:
        answer = served.asked(*asked)
        reported = (answer.status, answer.body[:300])
        assert answer.status < 500, reported
        assert str(answer.status) in declared, reported
        kind = answer.headers["content-type"].partition(";")[0]
        content = declared[str(answer.status)]["content"]
        assert kind in content, reported
        if kind == "application/json":
            schema = {**content[kind]["schema"], "components": DOCUMENT["components"]}
            Draft202012Validator(schema).validate(json.loads(answer.body))

    check()
