"""A broker that is killed, overloaded, or slowed down by its clients."""

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import free_ports, wait_until
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.timeout(90)
QUIET = {"log_level": 0, "socket.timeout.ms": 5000}


def read_all(bootstrap: str, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **QUIET})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    deadline = time.monotonic() + 20
    while len(found) < end and time.monotonic() < deadline:
        messages = consumer.consume(1000, 0.5)
        found += [(each.value() or b"").decode() for each in messages if not each.error()]
    return found


@pytest.mark.row("A012")
@pytest.mark.parametrize("settings", [(), ("--set", "log.flush.interval.messages=1")])
def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(
    settings: tuple[str, ...], tmp_path: Path
) -> None:
    """A killed process does not lose the page cache. With a flush before each response,
    acknowledged records would survive even a crash of the machine.
    """
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), *settings, folder=tmp_path) as broker:
        acknowledged: list[str] = []
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 1, **QUIET}
        )

        def delivered(error: object, message: object) -> None:
            if error is None:
                acknowledged.append(message.value().decode())  # type: ignore[attr-defined]

        number = 0
        for kill_after in (300, 600, 900):
            while len(acknowledged) < kill_after:
                producer.produce("kept", f"{number}", on_delivery=delivered)
                number += 1
                while len(producer) > 100:
                    producer.poll(0.01)
            broker.kill(0)
            broker.start(0)
        assert producer.flush(30) == 0
        found = read_all(broker.bootstrap, "kept")
        assert set(acknowledged) <= set(found)
        assert sorted(found, key=int) == found or len(found) > len(set(found))


def test_a_clean_stop_leaves_nothing_to_recover(tmp_path: Path) -> None:
    with PenstockBroker(folder=tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for number in range(1000):
            producer.produce("kept", f"{number}")
        assert producer.flush(10) == 0
        broker.stop(0)
        assert (broker.data_dir() / ".kafka_cleanshutdown").exists()
        assert not (broker.directory / "broker.json").exists()
        broker.start(0)
        assert read_all(broker.bootstrap, "kept") == [str(n) for n in range(1000)]


@pytest.fixture(scope="module")
def crowded() -> Iterator[PenstockBroker]:
    with PenstockBroker() as broker:
        yield broker


def answers(sock: socket.socket) -> bool:
    """Whether a Metadata request is answered."""
    sock.sendall(request_frame(APIS[3], 1, 1, "crowd", MetadataRequest(topics=[])))
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    return len(sock.recv(size, socket.MSG_WAITALL)) == size


def connected(broker: PenstockBroker) -> socket.socket:
    host, port = broker.bootstrap.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_thousand_connections_and_two_thousand_partitions_are_served(
    crowded: PenstockBroker,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    admin = AdminClient({"bootstrap.servers": crowded.bootstrap, "log_level": 0})
    made = admin.create_topics([NewTopic("wide", num_partitions=2000)], request_timeout=60)
    made["wide"].result(60)
    with ExitStack() as stack:
        socks = [stack.enter_context(connected(crowded)) for _ in range(1000)]
        began = time.perf_counter()
        assert all(answers(sock) for sock in socks)
        assert time.perf_counter() - began < 10
        assert len(admin.list_topics("wide", timeout=10).topics["wide"].partitions) == 2000
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_slow_readers_and_half_open_connections_do_not_hold_up_others(
    crowded: PenstockBroker,
) -> None:
    producer = Producer({"bootstrap.servers": crowded.bootstrap, **QUIET})
    for _ in range(40):
        producer.produce("large", bytes(900_000))
        producer.poll(0)
    assert producer.flush(30) == 0
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 << 20)
    fetch = FetchRequest(
        max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic="large", partitions=[part])]
    )
    frame = request_frame(APIS[1], 11, 1, "slow", fetch)
    with ExitStack() as stack:
        for _ in range(50):
            slow = stack.enter_context(connected(crowded))
            slow.sendall(frame)  # and never read the 36 MB response
        for _ in range(50):
            half = stack.enter_context(connected(crowded))
            half.sendall(b"\0\0\1\0half a request")
        sock = stack.enter_context(connected(crowded))
        began = time.perf_counter()
        assert all(answers(sock) for _ in range(100))
        assert time.perf_counter() - began < 5
    assert crowded.running


def test_no_broken_client_stops_the_broker(crowded: PenstockBroker) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" * 50, b"\xff" * 100, b"\0\0\0\0"):
        with connected(crowded) as sock:
            sock.sendall(garbage)
    with connected(crowded) as sock:
        assert answers(sock)


def test_the_broker_stops_quickly_while_clients_wait(tmp_path: Path) -> None:
    with PenstockBroker(folder=tmp_path) as broker, connected(broker) as sock:
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        fetch = FetchRequest(
            max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[part])]
        )
        Producer({"bootstrap.servers": broker.bootstrap, **QUIET}).list_topics("t", timeout=10)
        sock.sendall(request_frame(APIS[1], 11, 1, "waiting", fetch))
        began = time.perf_counter()
        pid = broker.pids[0]
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not broker.running, 10, "the broker to stop")
        assert time.perf_counter() - began < 5
