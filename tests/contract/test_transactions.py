"""Transactions of unmodified clients: readers see all of a transaction, or nothing."""

import json
import re
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from clients.brokers import Target
from peers import java
from peers.penstock import PenstockBroker
from peers.tools import tool
from support.transactions.stable_offsets import wait_for_markers

pytestmark = pytest.mark.timeout(120)
QUIET = {"log_level": 0}
WAIT_S = 20


def make(bootstrap: str, *topics: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for made in admin.create_topics([NewTopic(each, partitions) for each in topics]).values():
        made.result(WAIT_S)


def producer(bootstrap: str, transactional_id: str) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **QUIET})
    made.init_transactions(WAIT_S)
    return made


def consumer(bootstrap: str, group: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUIET,
        }
    )


def seen(
    bootstrap: str, topic: str, partitions: int = 2, *, while_open: bool = False, **more: str
) -> list[str]:
    """Everything that a consumer sees up to the end of each partition.

    With `while_open`, a transaction is open during the read; otherwise all have ended.
    """
    if not while_open:
        wait_for_markers(bootstrap, topic, partitions)
    reader = consumer(bootstrap, "nobody", **more)
    reader.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found, ended = [], 0
    deadline = time.monotonic() + WAIT_S
    while ended < partitions and time.monotonic() < deadline:
        message = reader.poll(1)
        if message is not None and message.error():
            ended += 1
        elif message is not None:
            found.append((message.value() or b"").decode())
    reader.close()
    return found


@pytest.mark.row("A058")
def test_committed_transactions_are_visible_and_aborted_ones_are_not(
    target: Target, topic: str
) -> None:
    make(target.bootstrap, topic)
    writer = producer(target.bootstrap, topic)
    for number in range(10):
        writer.begin_transaction()
        for record in range(4):
            writer.produce(topic, f"{number}-{record}", partition=record % 2)
        if number % 2:
            writer.flush(WAIT_S)
            writer.abort_transaction(WAIT_S)
        else:
            writer.commit_transaction(WAIT_S)
    committed = [f"{number}-{record}" for number in range(0, 10, 2) for record in range(4)]
    assert sorted(seen(target.bootstrap, topic)) == committed
    assert len(seen(target.bootstrap, topic, isolation="read_uncommitted")) == 40


def test_an_open_transaction_hides_later_records(target: Target, topic: str) -> None:
    make(target.bootstrap, topic, partitions=1)
    slow, quick = producer(target.bootstrap, f"{topic}-s"), producer(target.bootstrap, f"{topic}-q")
    slow.begin_transaction()
    slow.produce(topic, "slow")
    slow.flush(WAIT_S)
    quick.begin_transaction()
    quick.produce(topic, "quick")
    quick.commit_transaction(WAIT_S)
    assert seen(target.bootstrap, topic, 1, while_open=True) == []
    with pytest.raises(TimeoutError, match=f"the markers of all transactions in {topic}"):
        wait_for_markers(target.bootstrap, topic, 1, timeout_s=0)
    slow.commit_transaction(WAIT_S)
    assert seen(target.bootstrap, topic, 1) == ["slow", "quick"]


def test_a_new_producer_fences_the_old_one_and_aborts_its_transaction(
    target: Target, topic: str
) -> None:
    make(target.bootstrap, topic)
    zombie = producer(target.bootstrap, topic)
    zombie.begin_transaction()
    zombie.produce(topic, "of the old one")
    zombie.flush(WAIT_S)
    heir = producer(target.bootstrap, topic)
    with pytest.raises(KafkaException, match="_FENCED"):
        zombie.commit_transaction(WAIT_S)
    heir.begin_transaction()
    heir.produce(topic, "of the new one")
    heir.commit_transaction(WAIT_S)
    assert seen(target.bootstrap, topic) == ["of the new one"]


def test_offsets_are_committed_with_their_transaction(target: Target, topic: str) -> None:
    make(target.bootstrap, topic, f"{topic}-copy", partitions=1)
    writer = producer(target.bootstrap, topic)
    writer.begin_transaction()
    for number in range(6):
        writer.produce(topic, f"{number}")
    writer.commit_transaction(WAIT_S)
    reader = consumer(target.bootstrap, f"copy-{topic}")
    reader.subscribe([topic])
    where = TopicPartition(topic, 0)
    first = [message for message in reader.consume(3, WAIT_S) if not message.error()]
    for committed in (False, True):
        writer.begin_transaction()
        for message in first:
            writer.produce(f"{topic}-copy", message.value())
        position = TopicPartition(topic, 0, (first[-1].offset() or 0) + 1)
        group = reader.consumer_group_metadata()
        writer.send_offsets_to_transaction([position], group, WAIT_S)
        if committed:
            writer.commit_transaction(WAIT_S)
        else:
            writer.flush(WAIT_S)
            writer.abort_transaction(WAIT_S)
        (stored,) = reader.committed([where], WAIT_S)
        assert stored.offset == (position.offset if committed else -1001)
    reader.close()
    assert seen(target.bootstrap, f"{topic}-copy", 1) == ["0", "1", "2"]


def test_a_transaction_that_takes_too_long_is_aborted(topic: str) -> None:
    often = "transaction.abort.timed.out.transaction.cleanup.interval.ms=50"
    with PenstockBroker("--set", often) as broker:
        make(broker.bootstrap, topic, partitions=1)
        writer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": topic,
                "transaction.timeout.ms": 1000,
                "message.timeout.ms": 1000,
                **QUIET,
            }
        )
        writer.init_transactions(WAIT_S)
        writer.begin_transaction()
        writer.produce(topic, "late")
        writer.flush(WAIT_S)
        other = producer(broker.bootstrap, "other")
        other.begin_transaction()
        other.produce(topic, "in time")
        other.commit_transaction(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while not (found := seen(broker.bootstrap, topic, 1, while_open=True)):
            assert time.monotonic() < deadline
        assert found == ["in time"]
        with pytest.raises(KafkaException):
            writer.commit_transaction(WAIT_S)


@pytest.mark.peer
def test_the_official_client_writes_copies_and_is_fenced(target: Target, topic: str) -> None:
    make(target.bootstrap, topic, f"{topic}-copy")
    reported = java.run(
        "Transactions", target.bootstrap, topic, f"{topic}-copy", jars="clients-4.4.0"
    )
    committed = " ".join(f"{number}-{record}" for number in range(0, 10, 2) for record in range(4))
    assert reported.splitlines() == [
        f"read {committed}",
        "copied 20",
        f"read {committed}",
        "fenced true",
    ]


@pytest.mark.peer
def test_the_official_tool_lists_and_describes_transactions(target: Target, topic: str) -> None:
    make(target.bootstrap, topic)
    writer = producer(target.bootstrap, topic)
    writer.begin_transaction()
    writer.produce(topic, "open", partition=1)
    writer.flush(WAIT_S)
    where = ("--bootstrap-server", target.bootstrap)
    listed = tool("kafka-transactions", *where, "list").stdout
    assert re.search(rf"^{topic}\s+\d+\s+\d+\s+Ongoing\s*$", listed, re.MULTILINE)
    described = tool("kafka-transactions", *where, "describe", "--transactional-id", topic).stdout
    assert re.search(rf"{topic}\s.*\sOngoing\s.*\s{topic}-1\s*$", described, re.MULTILINE)
    hanging = ("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert topic not in tool("kafka-transactions", *where, *hanging).stdout
    writer.abort_transaction(WAIT_S)


@pytest.mark.peer
def test_the_official_formatter_prints_the_state_topic(target: Target, topic: str) -> None:
    make(target.bootstrap, topic)
    writer = producer(target.bootstrap, topic)
    writer.begin_transaction()
    writer.produce(topic, "seen", partition=0)
    writer.commit_transaction(WAIT_S)
    reported = tool(
        "kafka-console-consumer",
        *("--bootstrap-server", target.bootstrap, "--topic", "__transaction_state"),
        *("--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"),
        *("--from-beginning", "--timeout-ms", "3000"),
        check=False,
    ).stdout
    printed = json.loads(f"[{reported.strip().replace('}{', '},{')}]")  # without separators
    ours = [
        each["value"]["data"] for each in printed if each["key"]["data"]["transactionalId"] == topic
    ]
    states = [each["transactionStatus"] for each in ours]
    assert states == [0, 1, 2, 4]
    partitions = [{"topic": topic, "partitionIds": [0]}]
    assert ours[1]["transactionPartitions"] == ours[2]["transactionPartitions"] == partitions
