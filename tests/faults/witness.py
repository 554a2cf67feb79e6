"""Clients of other authors beside the load: a writer, readers and members of a group.

The responses they get go into the same history, so that no single client library decides what is
right. `KAFKA` are Kafka's own verifiable clients, `FRANZ` is franz-go.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from clients.programs import go_program
from faults.history import Group, History, Looked, Polled
from faults.load import PARTITIONS, READING, WAIT_S
from faults.telling import Event, events, member_events, polled, sent
from peers.process import Process, last_lines, wait_until
from peers.servers import properties
from peers.tools import tool_command

PREFIX = "9"
"""The prefix of the witness's values. Kafka's tool requires a number."""
LOOK_S = 0.05
"""The pause between two fetches of a group's committed offsets."""

Command = list[str]


@dataclass(frozen=True, slots=True)
class Kind:
    """How to start the clients of a witness. The folder is for the files that they need."""

    name: str
    writer: Callable[[str, str, Path], Command]
    member: Callable[[str, str, str, Path], Command]
    reader: Callable[[str, str], Command] | None = None
    """A reader without a group, if the client can do that."""

    def __call__(self, bootstrap: str, topic: str) -> "Witness":
        return Witness(self, bootstrap, topic)


class Beside(Protocol):
    """Clients beside the load: see `Witness`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def wait_for_acks(self, count: int) -> None: ...
    def stop_writing(self) -> None: ...
    def wait_until_drained(self, final: Sequence[Polled]) -> None: ...
    def tell(self, history: History) -> None: ...


def readers(topic: str) -> str:
    """The group that a witness forms."""
    return f"{topic}-readers"


class Witness:
    """`with Witness(kind, bootstrap, topic) as witness:` writes and reads meanwhile.

    Afterwards call `wait_until_drained` with the final records, and `tell` to fill the history.
    """

    def __init__(self, kind: Kind, bootstrap: str, topic: str, members: int = 2) -> None:
        self._kind, self._bootstrap, self._topic, self._members = kind, bootstrap, topic, members
        self._group = readers(topic)
        self._ending = ExitStack()
        self._looking = Looking(bootstrap, self._group, topic)

    def __enter__(self) -> "Witness":
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="witness-")))
            where = self._bootstrap, self._topic

            def printing(name: str, command: Command) -> Printing:
                return undo.enter_context(Printing(f"{self._kind.name} {name}", command, folder))

            self._readers = {}
            if self._kind.reader is not None:
                self._readers["reader"] = printing("reader", self._kind.reader(*where))
            names = [f"member {number}" for number in range(self._members)]
            in_group = self._kind.member(*where, self._group, folder)
            self._in_group = {name: printing(name, in_group) for name in names}
            self._writer = printing("writer", self._kind.writer(*where, folder))
            undo.enter_context(self._looking)
            self.wait_for_acks(1)
            self._wait(lambda: all(each.got for each in self._all_readers()), "all to read")
            self._ending = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def wait_for_acks(self, count: int) -> None:
        """Waits until its writer has `count` more acknowledgements."""
        wanted = self._writer.acked + count
        self._wait(lambda: self._writer.acked >= wanted, f"{count} acknowledgements")

    def stop_writing(self) -> None:
        """Stops the writer cleanly: it reports everything that it sent."""
        self._writer.end()

    def wait_until_drained(self, final: Sequence[Polled]) -> None:
        """Waits until its readers have read everything, and its group has committed all of it."""
        wanted = {(each.partition, each.offset) for each in final}
        self._wait(
            lambda: all(wanted <= each.got for each in self._readers.values()),
            "readers to get all",
        )
        self._wait(
            lambda: wanted <= set().union(*(each.got for each in self._in_group.values())),
            "the group to get all",
        )
        ends = {partition: offset + 1 for partition, offset in sorted(wanted)}
        self._wait(lambda: self._looking.has_reached(ends), "the group to commit all")
        for each in self._all_readers():
            each.end()
        self._looking.end()

    def tell(self, history: History) -> None:
        """Adds what its clients reported, once all of them have ended."""
        name = self._kind.name
        history.sent[name] = sent(self._writer.reported, PREFIX)
        for reader in self._readers.values():
            history.polled[reader.name] = polled(reader.reported)
        history.groups[self._group] = Group(
            {each.name: member_events(each.reported) for each in self._in_group.values()},
            self._looking.looked,
        )

    def _all_readers(self) -> "list[Printing]":
        return [*self._readers.values(), *self._in_group.values()]

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def done() -> bool:
            for each in (*self._all_readers(), self._writer):
                each.look()
            return condition()

        try:
            wait_until(done, WAIT_S, what)
        except TimeoutError as late:
            words = [each.last_words() for each in (self._writer, *self._all_readers())]
            words.append(f"committed: {self._looking.looked[-1:]}")
            raise TimeoutError("\n".join([f"{late}", *words])) from late


class Printing:
    """A client in a separate process; `reported` are the events that it printed."""

    def __init__(self, name: str, command: Command, folder: Path) -> None:
        self.name = name
        self.reported: list[Event] = []
        self.acked = 0
        self.got: set[tuple[int, int]] = set()
        own = folder / name
        own.mkdir()
        self._process, self._read, self._ended = Process(name, command, own), 0, False

    def __enter__(self) -> "Printing":
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def look(self) -> None:
        """Reads new output. Fails if the process has ended by itself."""
        running = self._process.running
        with self._process.output.open("rb") as output:
            output.seek(self._read)
            data = output.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for each in events(whole.decode().splitlines()):
            self.reported.append(each)
            self.acked += each["name"] == "producer_send_success"
            if each["name"] == "record_data":
                self.got.add((each["partition"], each["offset"]))
        assert running or self._ended, f"it ended early: {self.last_words()}"

    def last_words(self) -> str:
        return f"{self.name}:\n{last_lines(self._process.output, 5)}"

    def end(self) -> None:
        """Stops it by SIGTERM; it finishes its work and prints that."""
        self._process.stop(WAIT_S)
        self._ended = True
        self.look()
        done = any(each["name"] == "shutdown_complete" for each in self.reported)
        assert done, f"it broke off: {self.last_words()}"


@dataclass
class Looking:
    """Fetches a group's committed offsets again and again, with librdkafka."""

    bootstrap: str
    group: str
    topic: str
    looked: list[Looked] = field(default_factory=list)

    def __enter__(self) -> "Looking":
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._done.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "it hangs"

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Whether everything below these offsets is committed."""
        last = self.looked[-1].offsets if self.looked else {}
        return all(last.get(partition, -1) >= end for partition, end in ends.items())

    def _look(self) -> None:
        # Not with the admin client, whose version 2.16 crashes when the broker it asks leaves the
        # metadata.
        own = {"bootstrap.servers": self.bootstrap, **READING, "group.id": self.group}
        consumer = Consumer(own)
        wanted = [TopicPartition(self.topic, each) for each in range(PARTITIONS)]
        while not self._done.wait(LOOK_S):
            asked_ms = time.time_ns() // 1_000_000
            try:
                found = consumer.committed(wanted, timeout=5)
                refused = any(each.error for each in found)
            except KafkaException:
                found, refused = [], True
            if refused:
                # By default it looks for another coordinator every ten minutes; a new consumer does
                # so now.
                consumer.close()
                consumer = Consumer(own)
                continue
            offsets = {each.partition: each.offset for each in found if each.offset >= 0}
            self.looked.append(Looked(asked_ms, offsets))
        consumer.close()


PATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "metadata.max.age.ms": 1000,
    "request.timeout.ms": 5000,
    "socket.connection.setup.timeout.ms": 2000,
}
WRITING = {
    **PATIENT,
    # Otherwise the tool would retry nothing.
    "enable.idempotence": "true",
    "retries": 2**31 - 1,
    "delivery.timeout.ms": WAIT_S * 1000,
    "max.block.ms": WAIT_S * 1000,
}
GROUP_READING = {**PATIENT, "isolation.level": "read_committed"}


def properties_file(folder: Path, name: str, settings: Mapping[str, object]) -> str:
    file = folder / name
    file.write_text(properties(dict(settings)))
    return os.fspath(file)


def _verifiable_producer(bootstrap: str, topic: str, folder: Path) -> Command:
    return tool_command(
        "kafka-verifiable-producer",
        *("--bootstrap-server", bootstrap, "--topic", topic),
        *("--acks", "-1", "--throughput", "250", "--value-prefix", PREFIX),
        *("--command-config", properties_file(folder, "writing.properties", WRITING)),
    )


def _classic_consumer(bootstrap: str, topic: str, group: str, folder: Path) -> Command:
    settings = {**GROUP_READING, "heartbeat.interval.ms": 300}
    own = ("--session-timeout", "6000")
    return _verifiable_consumer(
        bootstrap, topic, group, properties_file(folder, "classic", settings), *own
    )


def _next_consumer(bootstrap: str, topic: str, group: str, folder: Path) -> Command:
    """Uses the consumer protocol (KIP-848), where the broker decides on sessions and heartbeats."""
    own = ("--group-protocol", "CONSUMER")
    return _verifiable_consumer(
        bootstrap, topic, group, properties_file(folder, "next", GROUP_READING), *own
    )


def _verifiable_consumer(
    bootstrap: str, topic: str, group: str, settings: str, *options: str
) -> Command:
    return tool_command(
        "kafka-verifiable-consumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group),
        *("--verbose", "--command-config", settings, *options),
    )


KAFKA = Kind("Kafka's verifiable clients", _verifiable_producer, _classic_consumer)
KAFKA_NEXT = Kind("Kafka's by the consumer protocol", _verifiable_producer, _next_consumer)
FRANZ = Kind(
    "franz-go",
    lambda bootstrap, topic, _: [
        *go_program("witness"), "write", bootstrap, topic, PREFIX, str(PARTITIONS),
    ],
    lambda bootstrap, topic, group, _: [*go_program("witness"), "member", bootstrap, topic, group],
    lambda bootstrap, topic: [*go_program("witness"), "read", bootstrap, topic, str(PARTITIONS)],
)  # fmt: skip
