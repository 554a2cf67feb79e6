"""librdkafka clients that write and read all the time, and record the responses they get."""

import random
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from faults.history import History, Polled, Sent, Transaction

PARTITIONS = 3
WAIT_S = 60
BURST = 5
"""The number of records that the writer sends without a pause."""
IN_FLIGHT = 300
"""The most unacknowledged records of a writer with such bursts: more would only wait longer."""

QUIET: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.interval.ms": 1000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 5000,
    "socket.connection.setup.timeout.ms": 2000,
    "request.timeout.ms": 5000,
}
READING: dict[str, Any] = {
    **{name: value for name, value in QUIET.items() if name != "request.timeout.ms"},
    "group.id": "nobody",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
}


class Load:
    """`with Load(bootstrap, topic) as load:` writes and reads meanwhile; then see
    `load.history`.
    """

    def __init__(self, bootstrap: str, topic: str, *, seed: int = 0, burst: int = BURST) -> None:
        self.history = History()
        self._bootstrap, self._topic, self._burst = bootstrap, topic, burst
        self._dice = random.Random(seed)
        self._done, self._read = threading.Event(), threading.Event()
        self.acked_s: list[tuple[int, float]] = []
        """The partition and the time of each acknowledgement."""
        self._errors: list[BaseException] = []
        self._writers = [self._thread(self._write), self._thread(self._transact)]
        self._reader = self._thread(self._poll)

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - told where it is joined
                self._errors.append(error)

        return threading.Thread(target=guarded, daemon=True)

    def __enter__(self) -> "Load":
        for each in (*self._writers, self._reader):
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for each in self._writers:
            each.join(WAIT_S + 10)
        self._read.set()
        self._reader.join(WAIT_S)
        if self._errors:
            raise self._errors[0]
        assert not any(each.is_alive() for each in (*self._writers, self._reader)), "one hangs"

    def wait_for_acks(self, count: int, timeout_s: float = WAIT_S) -> None:
        """Waits until `count` more records are acknowledged."""
        wanted, deadline_s = len(self.acked_s) + count, time.monotonic() + timeout_s
        while len(self.acked_s) < wanted:
            if self._errors:
                raise self._errors[0]
            assert time.monotonic() < deadline_s, f"no acknowledgement within {timeout_s} s"
            self._done.wait(0.01)

    def wait_for_commit(self) -> None:
        """Waits until one more transaction is committed."""
        before, deadline_s = self._commits(), time.monotonic() + WAIT_S
        while self._commits() == before:
            if self._errors:
                raise self._errors[0]
            assert time.monotonic() < deadline_s, f"no transaction is committed in {WAIT_S} s"
            self._done.wait(0.01)

    def _commits(self) -> int:
        return sum(each.outcome == "committed" for each in list(self.history.transactions))

    def longest_gap_s(self) -> float:
        """The longest time without an acknowledgement in a partition, from its first record to its
        last.
        """
        longest = 0.0
        for partition in range(PARTITIONS):
            moments = [at for where, at in self.acked_s if where == partition]
            longest = max([longest, *(b - a for a, b in pairwise(moments))])
        return longest

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": WAIT_S * 1000,
                **QUIET,
            }
        )
        reported: dict[int, int | None] = {}

        def note(number: int) -> Callable[[Any, Message], None]:
            def delivered(error: Any, message: Message) -> None:
                reported[number] = None if error else message.offset()
                if not error:
                    self.acked_s.append((message.partition() or 0, time.monotonic()))

            return delivered

        number, in_flight = 0, IN_FLIGHT * self._burst // BURST
        while not self._done.is_set():
            while len(producer) < in_flight and not self._done.is_set():
                producer.produce(
                    self._topic,
                    f"w-{number}",
                    partition=number % PARTITIONS,
                    on_delivery=note(number),
                )
                number += 1
                if number % self._burst == 0:
                    break
            producer.poll(0.004)
            self._done.wait(0.004)
        producer.flush(WAIT_S + 5)
        self.history.sent["writer"] = [
            Sent(f"w-{each}", each % PARTITIONS, reported.get(each)) for each in range(number)
        ]

    def _transact(self) -> None:
        writer, number = self._transactional(), 0
        while not self._done.is_set():
            values = tuple(f"t-{number}-{each}" for each in range(PARTITIONS))
            commits, number = self._dice.random() < 0.7, number + 1
            try:
                writer.begin_transaction()
                for partition, value in enumerate(values):
                    writer.produce(self._topic, value, partition=partition)
                if not commits:
                    # Otherwise most aborted transactions would have sent nothing. All of it, since
                    # librdkafka 2.16 gives the sequence of a record that it drops after
                    # NOT_LEADER_OR_FOLLOWER to a record of the next transaction: if the first
                    # is in the log after all, the second counts as its duplicate, and is lost.
                    writer.flush(WAIT_S)
                _until_told(writer.commit_transaction if commits else writer.abort_transaction)
                outcome = "committed" if commits else "aborted"
            except KafkaException:
                # The outcome is unknown; the next producer with the same id ends the transaction.
                outcome, writer = "unknown", self._transactional()
            self.history.transactions.append(Transaction(values, outcome))
            self._done.wait(0.02)

    def _transactional(self) -> Producer:
        deadline_s = time.monotonic() + 2 * WAIT_S
        while True:
            made = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": f"{self._topic}-kept",
                    "transaction.timeout.ms": 10_000,
                    **QUIET,
                }
            )
            try:
                made.init_transactions(10)
            except KafkaException:
                if time.monotonic() > deadline_s:
                    raise
            else:
                return made

    def _poll(self) -> None:
        consumer = _consumer(self._bootstrap, self._topic)
        polled = self.history.polled["live"] = []
        while not self._read.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                polled.append(_polled(message))
        consumer.close()


def _until_told(end: Callable[[float], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while True:
        try:
            end(5)
        except KafkaException as failed:
            if not failed.args[0].retriable() or time.monotonic() > deadline_s:
                raise
        else:
            return


def read_all(bootstrap: str, topic: str) -> list[Polled]:
    """Everything that a new consumer reads, each partition to its end."""
    consumer = _consumer(bootstrap, topic, **{"enable.partition.eof": True})
    found: list[Polled] = []
    ended: set[int | None] = set()
    deadline_s = time.monotonic() + WAIT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline_s, f"the end was not reached: {ended}"
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if message is not None and error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        elif message is not None:
            found.append(_polled(message))
    consumer.close()
    return found


def _consumer(bootstrap: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer({"bootstrap.servers": bootstrap, **READING, **settings})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    return consumer


def _polled(message: Message) -> Polled:
    epoch = message.leader_epoch()
    return Polled(
        message.partition() or 0,
        message.offset() or 0,
        (message.value() or b"").decode(),
        -1 if epoch is None else epoch,
    )
