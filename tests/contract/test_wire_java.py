"""Kafka's own classes read our messages and write the same bytes, for every message."""

import base64
import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from codegen.__main__ import WIRE, installed_jars, write
from codegen.schemas import DATA_MESSAGES
from hypothesis import given, settings
from hypothesis import strategies as st

from peers.oracle import Oracle
from penstock.wire.apis import APIS, METADATA_RECORDS, snake
from penstock.wire.codec import decode, encode
from penstock.wire.schema import Array, Kind, Message, fields
from support.records.wire_values import ALL_VERSIONS, messages

pytestmark = pytest.mark.peer

ZOOKEEPER_MODE = {api.key for api in APIS.values() if api.inter_broker and api.key < 83}
"""Inter-broker APIs that only Kafka up to 3.9 has; those for the state of share groups are
current.
"""
BETWEEN_BROKERS = {
    kind for key in ZOOKEEPER_MODE for kind in (APIS[key].request, APIS[key].response)
}

SERVER_RECORDS = {
    name: f"org.apache.kafka.coordinator.{kind}.generated.{name}"
    for kind in ("group", "transaction", "share")
    for name in DATA_MESSAGES[f"kafka-{kind}-coordinator"]
} | {name: f"org.apache.kafka.common.metadata.{name}" for name in METADATA_RECORDS.values()}


@pytest.fixture(scope="module")
def zookeeper_mode_oracle() -> Iterator[Oracle]:
    with Oracle("kafka-3.9.2") as oracle:
        yield oracle


@pytest.fixture(scope="module")
def server_oracle() -> Iterator[Oracle]:
    with Oracle("kafka-4.3.1") as oracle:
        yield oracle


@pytest.mark.row("A001")
@pytest.mark.parametrize(
    ("message", "versions"), ALL_VERSIONS, ids=[m.__name__ for m, _ in ALL_VERSIONS]
)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_java_writes_the_same_bytes_and_reads_the_same_values(
    message: type[Message],
    versions: range,
    java_oracle: Oracle,
    zookeeper_mode_oracle: Oracle,
    server_oracle: Oracle,
    data: st.DataObject,
) -> None:
    oracle, name = java_oracle, message.__name__
    if message in BETWEEN_BROKERS:
        oracle = zookeeper_mode_oracle
    elif name in SERVER_RECORDS:
        oracle, name = server_oracle, SERVER_RECORDS[name]
    for version in versions:
        value = data.draw(messages(message, version))
        raw = encode(value, version)
        again, reported = oracle.reencode(name, version, raw)
        assert again == raw
        assert snake_keys(reported) == as_json(decode(message, version, raw), version)


def as_json(message: Message, version: int) -> dict[str, Any]:
    """A message in the form of Kafka's JSON converters, which leave out records and default
    tags.
    """
    found = {}
    for field in fields(type(message), version):
        value = getattr(message, field.name)
        if field.kind != "records" and not (field.tag is not None and value == field.default):
            found[field.name] = json_value(value, field.kind, version)
    return found


def json_value(value: Any, kind: Kind, version: int) -> Any:
    match value, kind:
        case None, _:
            return None
        case list(), Array(item):
            return [json_value(each, item, version) for each in value]
        case Message(), _:
            return as_json(value, version)
        case bytes(), "uuid":
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
        case bytes(), _:
            return base64.b64encode(value).decode()
        case _:
            return value


def snake_keys(reported: Any) -> Any:
    if isinstance(reported, dict):
        kept = {snake(key): snake_keys(value) for key, value in reported.items()}
        return {key: value for key, value in kept.items() if not key.startswith("records")}
    return [snake_keys(each) for each in reported] if isinstance(reported, list) else reported


def test_versions_and_flexible_versions_equal_those_of_kafka(
    java_oracle: Oracle, zookeeper_mode_oracle: Oracle
) -> None:
    ours = {api.key: (api.name, api.low, api.high, api.flexible) for api in APIS.values()}
    theirs = {}
    for oracle, between_brokers in ((java_oracle, False), (zookeeper_mode_oracle, True)):
        for api in oracle.apis():
            if api.key in APIS and (api.key in ZOOKEEPER_MODE) == between_brokers:
                flexible = api.first_flexible
                known = 32767 if flexible is None else flexible
                # Only the served range is compared: an earlier first flexible version cannot be
                # seen.
                if known == api.min and ours[api.key][3] < api.min:
                    known = ours[api.key][3]
                theirs[api.key] = (api.name, api.min, api.max, known)
    assert theirs == ours


def test_the_committed_messages_equal_the_output_of_codegen(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    shutil.copy(WIRE / "apis.py", tmp_path)
    write(tmp_path, installed_jars())
    names = {path.name for path in (tmp_path / "messages").iterdir()}
    assert names == {path.name for path in (WIRE / "messages").glob("*.py")}
    owned = ["apis.py", *(f"messages/{name}" for name in names)]
    _, changed, missing = filecmp.cmpfiles(tmp_path, WIRE, owned, shallow=False)
    assert (changed, missing) == ([], [])
