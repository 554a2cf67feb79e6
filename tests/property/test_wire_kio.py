"""kio, an independent implementation, reads what we write and writes the same bytes."""

import dataclasses
import io
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from penstock.wire.apis import APIS, Api, snake
from penstock.wire.codec import encode
from penstock.wire.schema import Message, fields
from support.records.wire_values import messages

KNOWN = [api for api in APIS.values() if find_spec(f"kio.schema.{snake(api.name)}")]


# Fields that Kafka 4.4 renamed.
RENAMED = {
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag_legacy"): "acceptable_recovery_lag",
    ("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id",
}


def kio_name(message: str, field: str) -> str:
    """kio leaves the unit out of names, because its types carry it."""
    return RENAMED.get((message, field), field).removesuffix("_ms")


def kio_entity(api: Api, version: int, side: str) -> Any:
    module = f"kio.schema.{snake(api.name)}.v{version}"
    if not find_spec(module):
        return None
    return getattr(import_module(f"{module}.{side}"), f"{api.name}{side.capitalize()}")


def test_kio_knows_most_of_the_table() -> None:
    unknown = {api.name for api in APIS.values()} - {api.name for api in KNOWN}
    assert unknown == {
        "ControlledShutdown",
        "LeaderAndIsr",
        "StopReplica",
        "StreamsGroupTopologyDescriptionUpdate",
        "UpdateMetadata",
    }


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("api", KNOWN, ids=lambda api: api.name)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_kio_writes_the_same_bytes(api: Api, side: str, data: st.DataObject) -> None:
    message: type[Message] = getattr(api, side)
    compared = 0
    for version in range(api.low, api.high + 1):
        entity = kio_entity(api, version, side)
        if entity is None:
            continue
        raw = encode(data.draw(messages(message, version)), version)
        read, size = entity_reader(entity)(raw, 0)
        assert size == len(raw)
        written = io.BytesIO()
        entity_writer(entity)(written, read)
        assert written.getvalue() == raw
        # Equal bytes could still belong to swapped fields of the same type.
        ours = [kio_name(message.__name__, f.name) for f in fields(message, version)]
        assert ours == [f.name for f in dataclasses.fields(entity)]
        compared += 1
    assert compared
