"""Hanging transactions: administrators find and abort them, and readers continue."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from clients.brokers import Target
from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.tools import tool
from penstock.record.build import build_batch, numbered
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from support.brokers.wire_link import WireLink

pytestmark = [pytest.mark.peer, pytest.mark.timeout(120)]
QUIET = {"log_level": 0}
WAIT_S = 20
UNCHECKED = ("transaction.partition.verification.enable", "false")
"""Lets a batch of a transaction that no coordinator knows into the log, as was possible before
KIP-890.
"""
PRODUCER_ID, HOUR_MS = 424_242, 3_600_000


@pytest.fixture(scope="module", params=["penstock", pytest.param("kafka", marks=pytest.mark.soak)])
def unchecked(request: pytest.FixtureRequest) -> Iterator[Target]:
    target: PenstockBroker | KafkaCluster
    if request.param == "penstock":
        target = PenstockBroker("--set", "=".join(UNCHECKED))
    else:
        target = KafkaCluster(settings=dict([UNCHECKED]))
    with target as running:
        yield running


def make(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(WAIT_S)


def write_hanging(bootstrap: str, topic: str, producer_id: int) -> int:
    """Writes an old batch of a transaction that no coordinator knows; returns its offset."""
    batch = build_batch(
        numbered([(None, b"hanging")], round(time.time() * 1000) - HOUR_MS),
        producer_id=producer_id,
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
    reported = answer.responses[0].partition_responses[0]
    assert reported.error_code == 0
    return int(reported.base_offset)


def write_plain(bootstrap: str, topic: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S) == 0


def seen(bootstrap: str, topic: str) -> list[str]:
    """What a read_committed consumer sees up to the last stable offset."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found, deadline = [], time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        message = reader.poll(1)
        if message is not None and message.error():
            break
        if message is not None:
            found.append((message.value() or b"").decode())
    reader.close()
    return found


def transactions(target: Target, *command: str) -> str:
    return tool("kafka-transactions", "--bootstrap-server", target.bootstrap, *command).stdout


@pytest.mark.parametrize("form", ["by offset", "by producer"])
def test_a_hanging_transaction_is_found_and_aborted(
    unchecked: Target, topic: str, form: str
) -> None:
    make(unchecked.bootstrap, topic)
    write_plain(unchecked.bootstrap, topic, "before")
    producer_id = PRODUCER_ID + ["by offset", "by producer"].index(form)
    offset = write_hanging(unchecked.bootstrap, topic, producer_id)
    write_plain(unchecked.bootstrap, topic, "behind")
    assert seen(unchecked.bootstrap, topic) == ["before"]

    found = transactions(unchecked, "find-hanging", "--topic", topic)
    assert re.search(rf"^{topic}\s+0\s+{producer_id}\s+3\s+-1\s+{offset}\s", found, re.MULTILINE)
    which = ("--topic", topic, "--partition", "0")
    if form == "by offset":
        transactions(unchecked, "abort", *which, "--start-offset", f"{offset}")
    else:
        whose = ("--producer-id", f"{producer_id}", "--producer-epoch", "3")
        transactions(unchecked, "abort", *which, *whose, "--coordinator-epoch", "0")
    assert seen(unchecked.bootstrap, topic) == ["before", "behind"]
    assert topic not in transactions(unchecked, "find-hanging", "--topic", topic)


def test_an_open_transaction_is_aborted_by_its_id(unchecked: Target, topic: str) -> None:
    make(unchecked.bootstrap, topic)
    writer = Producer(
        {"bootstrap.servers": unchecked.bootstrap, "transactional.id": topic, **QUIET}
    )
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce(topic, "open", partition=0)
    writer.flush(WAIT_S)
    write_plain(unchecked.bootstrap, topic, "behind")
    assert seen(unchecked.bootstrap, topic) == []
    transactions(unchecked, "forceTerminateTransaction", "--transactionalId", topic)
    deadline = time.monotonic() + WAIT_S
    while seen(unchecked.bootstrap, topic) != ["behind"]:
        assert time.monotonic() < deadline
    described = transactions(unchecked, "describe", "--transactional-id", topic)
    assert re.search(r"\sEmpty\s|\sCompleteAbort\s", described)
    with pytest.raises(KafkaException):
        writer.commit_transaction(WAIT_S)
