"""The console aborts a hanging transaction, but none that its producer may still commit."""

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.change import Doing
from penstock.console.changes.cluster import TransactionAbort, abort
from penstock.console.jobs import Jobs
from penstock.errors import ConfigError
from penstock.record.build import build_batch, numbered
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.brokers.wire_link import WireLink
from support.console import QUIET

pytestmark = pytest.mark.slow

UNCHECKED = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "1",
}
"""Lets a batch of a transaction that no coordinator knows into the log."""
HOUR_MS = 3_600_000


def write_forgotten(bootstrap: str, topic: str) -> None:
    batch = build_batch(
        numbered([(None, b"hangs")], round(time.time() * 1000) - HOUR_MS),
        producer_id=424_242,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    data = [PartitionProduceData(index=0, records=bytes(batch))]
    request = ProduceRequest(
        transactional_id="forgotten",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    with WireLink(bootstrap) as link:
        answer: Any = link.ask(request, version=9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def aborted(bootstrap: str, topic: str) -> str:
    async with Client(parse_addresses(bootstrap)) as client:
        doing = Doing(client, Jobs(SystemClock()), "oscar")
        wanted = TransactionAbort(topic=topic, partition=0, start_offset=0)
        return (await abort(doing, wanted)).message


def test_only_a_hanging_transaction_is_aborted() -> None:
    with EmbeddedBroker(settings=UNCHECKED) as broker:
        for topic in ("live", "dead"):
            broker.create_topic(topic)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "live", **QUIET}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        old_ms = round(time.time() * 1000) - HOUR_MS
        producer.produce("live", b"kept", timestamp=old_ms)  # old, but not hanging
        assert producer.flush(20) == 0
        with pytest.raises(ConfigError, match="does not hang"):
            asyncio.run(aborted(broker.bootstrap, "live"))
        producer.commit_transaction(20)
        write_forgotten(broker.bootstrap, "dead")
        assert "producer 424242" in asyncio.run(aborted(broker.bootstrap, "dead"))
