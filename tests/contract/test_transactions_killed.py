"""A broker is killed in the middle of transactions: each is visible completely, or not at all."""

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import free_ports
from support.transactions.committed_values import committed

pytestmark = pytest.mark.timeout(300)
SEEDS = range(20) if os.environ.get("PENSTOCK_SOAK") else range(3)
TRANSACTIONS, RECORDS, KILLS = 200, 6, 4
PARTITIONS = 3
WAIT_S = 20
QUIET = {
    "log_level": 0,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 20,
}


class Writer:
    """Writes transactions and records the outcome that its client reported for each."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self._producer = self._made()

    def _made(self) -> Producer:
        deadline = time.monotonic() + WAIT_S
        while True:
            made = Producer(
                {"bootstrap.servers": self._bootstrap, "transactional.id": "kept", **QUIET}
            )
            try:
                made.init_transactions(5)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            else:
                return made

    def write(self, number: int, *, commits: bool) -> None:
        try:
            self._producer.begin_transaction()
            for record in range(RECORDS):
                self._producer.produce("kept", f"{number}", partition=record % PARTITIONS)
            if commits:
                self._until_told(self._producer.commit_transaction)
                self.committed.add(number)
            else:
                self._until_told(self._producer.abort_transaction)
                self.aborted.add(number)
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if error.txn_requires_abort():
                try:
                    self._until_told(self._producer.abort_transaction)
                except KafkaException:
                    self._producer = self._made()
                else:
                    self.aborted.add(number)
            else:
                self._producer = self._made()  # the outcome of this transaction is unknown

    def _until_told(self, end: object) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                end(5)  # type: ignore[operator]  # a method of the client without types
            except KafkaException as failed:
                if not failed.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return


@pytest.mark.row("A113")
@pytest.mark.parametrize("seed", SEEDS)
def test_each_transaction_is_all_or_nothing_when_the_broker_is_killed(
    seed: int, tmp_path: Path
) -> None:
    dice, moments = random.Random(seed), random.Random(~seed)
    kills = set(dice.sample(range(5, TRANSACTIONS), KILLS))
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        admin.create_topics([NewTopic("kept", PARTITIONS)])["kept"].result(WAIT_S)
        writer = Writer(broker.bootstrap)

        reached = {number: threading.Event() for number in kills}

        def write_all() -> None:
            for number in range(TRANSACTIONS):
                if number in reached:
                    reached[number].set()
                writer.write(number, commits=dice.random() < 0.7)

        # The broker dies with the thread that started it, so the writer gets the extra thread.
        with ThreadPoolExecutor() as threads:
            writing = threads.submit(write_all)
            for number in sorted(kills):
                assert reached[number].wait(60)
                threading.Event().wait(moments.uniform(0, 0.004))
                broker.kill(0)
                broker.start(0)
            writing.result(60)
        Writer(broker.bootstrap)  # aborts the transaction that is still open
        found = committed(broker.bootstrap, "kept", PARTITIONS, wait_s=WAIT_S)
    counts = Counter(int(value) for partition in found for value in partition)
    assert set(counts.values()) <= {RECORDS}, "some transactions are there in part, or twice"
    assert writer.committed <= set(counts)
    assert not writer.aborted & set(counts)
    assert len(writer.committed) > TRANSACTIONS // 2
    for partition in found:
        assert partition == sorted(partition, key=int)
