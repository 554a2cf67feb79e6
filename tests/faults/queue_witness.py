"""A share group and a delay topic beside the load."""

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from faults.history import Arrived, Delayed, History, Polled, Queue
from faults.load import PARTITIONS, QUIET, READING, WAIT_S
from faults.telling import queue_events
from faults.witness import GROUP_READING, Printing, properties_file
from peers.process import wait_until
from peers.tools import tool_command

QUEUE_SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    "share.record.lock.duration.ms": "15000",
}


class QueueWitness:
    """Kafka's VerifiableShareConsumer, twice: the group gets what the load writes, and accepts it
    record by record.
    """

    def __init__(self, bootstrap: str, topic: str, members: int = 2) -> None:
        self._bootstrap, self._topic, self._members = bootstrap, topic, members
        self._group = f"{topic}-queue"
        self._ending = ExitStack()

    def __enter__(self) -> "QueueWitness":
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in QUEUE_SETTINGS.items()
        ]
        wanted = ConfigResource(ResourceType.GROUP, self._group, incremental_configs=entries)
        for done in admin.incremental_alter_configs([wanted]).values():
            done.result(WAIT_S)
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="witness-")))
            settings = {name: GROUP_READING[name] for name in GROUP_READING if "." in name}
            settings.pop("isolation.level")
            command = tool_command(
                "kafka-verifiable-share-consumer",
                *("--bootstrap-server", self._bootstrap, "--topic", self._topic, "--verbose"),
                *("--group-id", self._group, "--acknowledgement-mode", "sync"),
                *("--command-config", properties_file(folder, "share", settings)),
            )
            self._in_group = [
                undo.enter_context(Printing(f"share member {number}", command, folder))
                for number in range(self._members)
            ]
            self._ending = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def wait_for_acks(self, count: int) -> None:
        """Waits until its members get `count` more records."""
        wanted = self._got() + count
        self._wait(lambda: self._got() >= wanted, f"{count} records of the share group")

    def stop_writing(self) -> None:
        """It writes nothing."""

    def wait_until_drained(self, final: Sequence[Polled]) -> None:
        """Waits until all is accepted. A record whose acknowledgement failed returns once its lock
        has ended; or never, if the group has stored it: then the checker decides.
        """
        wanted = {(each.partition, each.offset) for each in final}

        def all_got() -> bool:
            return wanted <= set().union(*(each.got for each in self._in_group))

        def all_accepted() -> bool:
            return wanted <= {(each.partition, each.offset) for each in self._queue().accepted}

        self._wait(all_got, "the share group to get all")
        with suppress(TimeoutError):
            self._wait(all_accepted, "the share group to accept all")
        for each in self._in_group:
            each.end()

    def tell(self, history: History) -> None:
        history.queues[self._group] = self._queue()

    def _queue(self) -> Queue:
        queue = Queue()
        for each in self._in_group:
            own = queue_events(each.name, each.reported)
            queue.given += own.given
            queue.accepted += own.accepted
            queue.refused += own.refused
        return queue

    def _got(self) -> int:
        return sum(len(each.got) for each in self._in_group)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def done() -> bool:
            for each in self._in_group:
                each.look()
            return condition()

        try:
            wait_until(done, 2 * WAIT_S, what)
        except TimeoutError as late:
            words = [each.last_words() for each in self._in_group]
            raise TimeoutError("\n".join([f"{late}, {self._got()} came", *words])) from late


class DelayWitness:
    """Writes records to a delay topic, due in a moment, and reads where they arrive."""

    LEAST_MS, MOST_MS = 500, 4000

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic, self._later = bootstrap, f"{topic}-due", f"{topic}-later"
        self._delayed, self._told = Delayed(), 0
        self._done, self._read = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._write, self._poll)
        ]

    def __enter__(self) -> "DelayWitness":
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        settings = {"min.insync.replicas": "2"}
        later = {**settings, "penstock.delay.to": self._topic}
        topics = [
            NewTopic(self._topic, PARTITIONS, 3, config=settings),
            NewTopic(self._later, PARTITIONS, 3, config=later),
        ]
        for made in admin.create_topics(topics).values():
            made.result(WAIT_S)
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._read.set()
        for each in self._threads:
            each.join(WAIT_S)

    def wait_for_acks(self, count: int) -> None:
        """Waits until `count` more records arrive."""
        wanted = len(self._delayed.arrived) + count
        wait_until(
            lambda: len(self._delayed.arrived) >= wanted, 2 * WAIT_S, "delayed records to arrive"
        )

    def stop_writing(self) -> None:
        self._done.set()
        self._threads[0].join(WAIT_S + 10)

    def wait_until_drained(self, final: Sequence[Polled]) -> None:  # noqa: ARG002 - its own topics
        wanted = self._delayed.due_ms.keys() - self._delayed.unknown

        def all_arrived() -> bool:
            return wanted <= {each.value for each in [*self._delayed.arrived]}

        wait_until(all_arrived, 2 * WAIT_S, "all delayed records to arrive")
        self._read.wait(1)  # duplicates would arrive late
        self._read.set()
        self._threads[1].join(WAIT_S)

    def tell(self, history: History) -> None:
        history.delayed.append(self._delayed)

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": WAIT_S * 1000,
                **QUIET,
            }
        )

        def on_delivery(error: Any, message: Message) -> None:
            value = (message.value() or b"").decode()
            if not error:
                self._delayed.unknown.discard(value)

        number = 0
        while not self._done.wait(0.02):
            value, number = f"d-{number}", number + 1
            wait_ms = self.LEAST_MS + number * 7919 % (self.MOST_MS - self.LEAST_MS)
            due_ms = round(time.time() * 1000) + wait_ms
            self._delayed.due_ms[value] = due_ms
            self._delayed.unknown.add(value)
            headers: dict[str, str | bytes | None] = {"penstock-deliver-at": str(due_ms)}
            producer.produce(self._later, value, headers=headers, on_delivery=on_delivery)
            producer.poll(0)
        producer.flush(WAIT_S + 5)

    def _poll(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, **READING})
        consumer.assign([TopicPartition(self._topic, each, 0) for each in range(PARTITIONS)])
        while not self._read.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                value = (message.value() or b"").decode()
                self._delayed.arrived.append(Arrived(value, time.time() * 1000))
        consumer.close()
