"""What the leader of a share-partition asks of a coordinator on another broker."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.share import persister as module
from penstock.broker.share.persister import Persister
from penstock.broker.share.state_calls import ReadState
from penstock.coordinator.share.coordinator import TOPIC
from penstock.coordinator.share.state import SharePartitionKey
from penstock.errors import ErrorCode, KafkaError
from penstock.testing.clock import ManualClock
from penstock.types import BrokerId, Uuid


class Silent:
    """A connection whose turn never comes: a call before this one hangs."""

    async def call(self, *_: object, **__: object) -> None:
        await asyncio.Event().wait()


def test_a_call_does_not_wait_for_ever_behind_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_MS", 10)
    image = SimpleNamespace(topics={TOPIC: None}, partition=lambda _: SimpleNamespace(leader=1))
    cluster: Any = SimpleNamespace(image=image)
    partitions: Any = SimpleNamespace(find=lambda *_: None)
    coordinator: Any = SimpleNamespace(partition_of=lambda _: 0)
    connection: Any = Silent()
    none: Any = None
    asking = Persister(
        BrokerId(0), cluster, partitions, coordinator, none, none, none, lambda _: connection
    )
    call = ReadState(SharePartitionKey("g", Uuid(b"t" * 16), 0), 1)
    reply = asyncio.run(asyncio.wait_for(asking._once(call), 5))
    assert isinstance(reply, KafkaError)
    assert reply.code == ErrorCode.REQUEST_TIMED_OUT


def test_what_has_no_coordinator_is_asked_for_until_the_given_time() -> None:
    """Who asks for very many waits once, not for each of them."""
    image = SimpleNamespace(topics={TOPIC: None}, partition=lambda _: SimpleNamespace(leader=-1))
    cluster: Any = SimpleNamespace(image=image)
    partitions: Any = SimpleNamespace(find=lambda *_: None)
    coordinator: Any = SimpleNamespace(partition_of=lambda _: 0)
    none: Any = None
    clock = ManualClock()
    asking = Persister(BrokerId(0), cluster, partitions, coordinator, none, clock, none, none)
    key = SharePartitionKey("g", Uuid(b"t" * 16), 0)
    assert not asking.has_coordinator(key)
    passed = asking.call_with_retries(ReadState(key, 1), clock.monotonic_ms())
    reply = asyncio.run(asyncio.wait_for(passed, 5))
    assert isinstance(reply, KafkaError)
    assert reply.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
