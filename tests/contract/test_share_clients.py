"""Share consumers that acknowledge each record individually, and long chains of queues."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from clients.programs import go_program
from peers.java import source_command
from penstock.testing.broker import EmbeddedBroker
from support.groups.share_member import ShareMember

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}
RECORDS = 200
WAIT_S = 90
PROGRAMS: dict[str, Callable[[], list[str]]] = {
    "java": lambda: source_command("Shared", jars="clients-4.4.0"),
    "franz-go": lambda: go_program("share", Path(__file__).parents[1] / "clients" / "share_go"),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def queues(bootstrap: str, *names: str) -> None:
    """Creates topics, each with a share group of the same name that starts at the first record."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for done in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        done.result(WAIT_S)
    earliest = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    for name in names:
        wanted = ConfigResource(ResourceType.GROUP, name, incremental_configs=[earliest])
        for altered in admin.incremental_alter_configs([wanted]).values():
            altered.result(WAIT_S)


def written(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(WAIT_S) == 0


@pytest.mark.parametrize("client", PROGRAMS)
def test_records_are_accepted_released_rejected_and_renewed(
    broker: EmbeddedBroker, client: str
) -> None:
    queue = f"explicit-{client}"
    queues(broker.bootstrap, queue)
    written(broker.bootstrap, queue)
    command = [*PROGRAMS[client](), broker.bootstrap, queue, queue, str(RECORDS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    reported: dict[int, list[tuple[int, str]]] = {}
    for line in ran.stdout.splitlines():
        value, delivery, verdict = line.split()
        reported.setdefault(int(value), []).append((int(delivery), verdict))
    assert reported.keys() == set(range(RECORDS))
    for number, deliveries in reported.items():
        match number % 10:
            case 3:
                assert deliveries == [(1, "release"), (2, "accept")]
            case 5:
                assert deliveries == [(1, "reject")]
            case 7:  # a renewal is no delivery; the Java client returns it again
                assert deliveries in ([(1, "renew")], [(1, "renew"), (1, "accept")])
            case _:
                assert deliveries == [(1, "accept")]
    another = ShareMember(broker.bootstrap, queue, "another", queue)
    another.join()
    assert another.acquired(wait_ms=500) == [], "all are done"
    another.close()


def transformed(bootstrap: str, name: str) -> None:
    """One run: two share consumers move records to the next queue, which a third consumer reads."""
    source, target = f"{name}-in", f"{name}-out"
    queues(bootstrap, source, target)
    written(bootstrap, source)
    common = {"bootstrap.servers": bootstrap, "max.poll.records": 50, **QUIET}
    movers = [ShareConsumer({**common, "group.id": source}) for _ in range(2)]
    reader = ShareConsumer({**common, "group.id": target})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
    for each in movers:
        each.subscribe([source])
    reader.subscribe([target])
    found: list[int] = []
    until = time.monotonic() + WAIT_S
    while len(found) < RECORDS and time.monotonic() < until:
        for each in movers:
            taken = each.poll(timeout=0.05)
            for record in taken:
                producer.produce(target, b"%d" % (2 * int(record.value() or b"-1")))
            assert producer.flush(WAIT_S) == 0
            if taken:
                assert not any(each.commit_sync().values())
        found += [int(record.value() or b"-1") for record in reader.poll(timeout=0.05)]
    for each in (*movers, reader):
        each.close()
    assert sorted(found) == [2 * number for number in range(RECORDS)], f"{name} hangs"


def test_consecutive_runs_of_a_queue_do_not_hang(broker: EmbeddedBroker) -> None:
    for number in range(8):
        transformed(broker.bootstrap, f"run-{number}")


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_160_consecutive_runs_of_a_queue_do_not_hang() -> None:
    with EmbeddedBroker() as broker:
        for number in range(160):
            transformed(broker.bootstrap, f"run-{number}")
