"""Kafka's own system test of transactions: copiers abort at random, rebalance and are killed."""

import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from clients.brokers import Target
from peers import java
from peers.process import Process, last_lines

pytestmark = [pytest.mark.peer, pytest.mark.timeout(150)]
QUIET = {"log_level": 0}
WAIT_S = 60
PARTITIONS, RECORDS = 2, 6000


class Copier(Process):
    """One copier. A restarted copier fences the transaction that its killed predecessor
    left open.
    """

    def __init__(self, bootstrap: str, topic: str, number: int, folder: Path) -> None:
        folder.mkdir()
        command = java.command(
            *("kafka-4.3.1", "org.apache.kafka.tools.TransactionalMessageCopier"),
            *("--broker-list", bootstrap, "--input-topic", topic, "--input-partition", "-1"),
            *("--output-topic", f"{topic}-copy", "--consumer-group", f"{topic}-copiers"),
            *("--transactional-id", f"{topic}-{number}", "--transaction-size", "10"),
            *("--enable-random-aborts", "--group-mode", "--use-group-metadata"),
        )
        super().__init__(f"copier {number}", command, folder)


class Copied:
    """What a read_committed consumer has read of the copies so far."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.counts: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "isolation.level": "read_committed",
                **QUIET,
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])

    def until(self, count: int, *copiers: Copier) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.counts.total() < count:
            reported = "\n".join(last_lines(each.output, 8) for each in copiers)
            assert time.monotonic() < deadline, f"{self.counts.total()} of {count}\n{reported}"
            for message in self._consumer.consume(500, 0.2):
                assert not message.error()
                self.counts[(message.value() or b"").decode()] += 1

    def close(self) -> None:
        self._consumer.close()


def test_each_record_is_copied_once_although_copiers_are_killed(
    target: Target, topic: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": target.bootstrap, **QUIET})
    news = [NewTopic(each, PARTITIONS) for each in (topic, f"{topic}-copy")]
    for made in admin.create_topics(news).values():
        made.result(WAIT_S)
    producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 5, **QUIET})
    for number in range(RECORDS):
        producer.produce(topic, f"{number}", f"{number}", partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0

    first, second = (Copier(target.bootstrap, topic, n, tmp_path / f"{n}") for n in (1, 2))
    copied = Copied(target.bootstrap, f"{topic}-copy")
    try:
        first.start()
        copied.until(200, first)
        second.start()  # takes over a partition midway
        copied.until(1500, first, second)
        first.kill()
        first.start()
        copied.until(RECORDS, first, second)
    finally:
        first.kill()
        second.kill()
    assert copied.counts == Counter(f"{number}" for number in range(RECORDS))
    again = Copied(target.bootstrap, f"{topic}-copy")
    again.until(RECORDS)
    assert again.counts == copied.counts
    copied.close()
    again.close()
