"""Quotas compared with a real Kafka: the same clients are throttled, for as long, by the same
rules.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from differential.batches import batch
from differential.cases.quotas import alter, entry
from peers.kafka import KafkaCluster
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.alter_client_quotas import EntryData
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.messages.metadata import MetadataRequest
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink

pytestmark = pytest.mark.peer

TOPIC = "limited"
RATE = 10_000.0
WINDOWS_S = 10
"""A client may use what the windows before the current one allow."""


class Sides(NamedTuple):
    ours: str
    kafka: str


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaCluster(folder=folder) as kafka, EmbeddedBroker() as ours:
        found = Sides(ours.bootstrap, f"127.0.0.1:{kafka.port(0)}")
        for each in found:
            ask(each, "admin", create(TOPIC, 1))
            while ask(each, "admin", produce(1), 9).responses[0].partition_responses[0].error_code:
                time.sleep(0.1)
        yield found


def ask(address: str, client_id: str, request: Message, version: int | None = None) -> Any:
    """Asks over a new connection, which is not muted for what the client's other
    connections did.
    """
    with WireLink(address) as link:
        link.client_id = client_id
        return link.ask(request, version)


def create(name: str, partitions: int, *more: str, validate_only: bool = False) -> Message:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=each, num_partitions=partitions, replication_factor=1)
            for each in (name, *more)
        ],
        timeout_ms=10_000,
        validate_only=validate_only,
    )


def produce(size_bytes: int, acks: int = 1) -> Message:
    data = PartitionProduceData(index=0, records=batch(size=size_bytes))
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(TOPIC, partition_data=[data])]
    )


def fetch(max_bytes: int, session_epoch: int = -1) -> Message:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=0,
        topics=[FetchTopic(topic=TOPIC, partitions=[part])],
        session_epoch=session_epoch,
    )


def set_quota(address: str, *entries: EntryData) -> None:
    answer = ask(address, "admin", alter(*entries))
    assert [each.error_code for each in answer.entries] == [0] * len(entries)
    time.sleep(0.3)  # Kafka's brokers learn of the quota later


def client(name: str) -> dict[str, str | None]:
    return {"client-id": name}


def told_by_both(sides: Sides, act: Callable[[str], list[int]], within_ms: int = 60) -> list[int]:
    """Returns our throttle times, after checking that Kafka's are nearly equal. Time passes between
    the two, so they may differ a little.
    """
    ours, kafka = act(sides.ours), act(sides.kafka)
    pairs = list(zip(ours, kafka, strict=True))
    assert all(abs(a - b) <= max(within_ms, 0.05 * b) for a, b in pairs), (ours, kafka)
    assert [a > 0 for a in ours] == [b > 0 for b in kafka], (ours, kafka)
    return ours


def test_a_producer_over_its_quota_is_throttled_as_long_as_by_kafka(sides: Sides) -> None:
    def act(address: str) -> list[int]:
        set_quota(address, entry(client("producer"), ("producer_byte_rate", RATE)))
        sizes = (50_000, 40_000, 20_000, 100, 60_000)
        return [ask(address, "producer", produce(s), 9).throttle_time_ms for s in sizes]

    reported = told_by_both(sides, act)
    assert reported[:2] == [0, 0]
    assert reported[2] == pytest.approx(1000, rel=0.1)
    assert reported[-1] == pytest.approx(7000, rel=0.1)


@pytest.mark.parametrize("acks", [0, 1])
def test_a_throttled_connection_is_muted_for_the_throttle_time(sides: Sides, acks: int) -> None:
    name = f"mute {acks}"

    def act(address: str) -> list[int]:
        set_quota(address, entry(client(name), ("producer_byte_rate", RATE)))
        with WireLink(address) as link:
            link.client_id = name
            if acks:
                response: Any = link.ask(produce(103_000, acks), 9)
                assert response.throttle_time_ms == pytest.approx(315, abs=30)
            else:
                link.post(produce(103_000, acks), 9)
            began = time.monotonic()
            link.ask(MetadataRequest(topics=[]))
            return [int((time.monotonic() - began) * 1000)]

    for address in sides:
        (waited,) = act(address)
        assert 280 <= waited < 1000


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_consumer_over_its_quota_gets_nothing_and_is_charged_nothing(
    sides: Sides, session_epoch: int
) -> None:
    name = f"consumer {session_epoch}"

    def act(address: str) -> list[int]:
        ask(address, "admin", produce(60_000), 9)
        set_quota(address, entry(client(name), ("consumer_byte_rate", RATE)))
        reported = []
        for _ in range(4):
            answer = ask(address, name, fetch(45_000, session_epoch), 12)
            parts = [part for topic in answer.responses for part in topic.partitions]
            size_bytes = sum(len(part.records or b"") for part in parts)
            assert (answer.session_id > 0) == (session_epoch == 0 and bool(parts))
            reported += [answer.throttle_time_ms, size_bytes]
        return reported

    reported = told_by_both(sides, act)
    assert reported[:4] == [0, 45_000, 0, 45_000]
    assert reported[5:] == [0, reported[6], 0]


def test_a_fetch_is_limited_to_what_its_quota_windows_allow(sides: Sides) -> None:
    def act(address: str) -> list[int]:
        ask(address, "admin", produce(60_000), 9)
        set_quota(address, entry(client("reader"), ("consumer_byte_rate", 4_000.0)))
        return [ask(address, "reader", fetch(1 << 20), 12).throttle_time_ms]

    reported = told_by_both(sides, act)
    assert max(reported) < 100, "it asks for 40,000 bytes and what surrounds them"


def test_request_time_is_limited_and_throttled_for_at_most_one_window(sides: Sides) -> None:
    def act(address: str) -> list[int]:
        set_quota(address, entry(client("busy"), ("request_percentage", 0.000_001)))
        return [ask(address, "busy", MetadataRequest(topics=[])).throttle_time_ms for _ in range(3)]

    assert told_by_both(sides, act) == [1000] * 3


LIMITS: dict[str, list[tuple[dict[str, str | None], float]]] = {
    "client": [(client("p client"), 1)],
    "default client": [({"client-id": None}, 2)],
    "a user before its client": [(client("p client"), 1), ({"user": "ANONYMOUS"}, 3)],
    "the default user before a client": [(client("p client"), 1), ({"user": None}, 3)],
    "a user before default user": [({"user": None}, 1), ({"user": "ANONYMOUS"}, 3)],
    "default user and client before default user": [
        ({"user": None}, 1),
        ({"user": None, "client-id": "p client"}, 3),
    ],
    "user before default user and client": [
        ({"user": "ANONYMOUS"}, 3),
        ({"user": None, "client-id": "p client"}, 1),
    ],
    "user and default client before user": [
        ({"user": "ANONYMOUS"}, 1),
        ({"user": "ANONYMOUS", "client-id": None}, 2),
    ],
    "both before all": [
        ({"user": "ANONYMOUS", "client-id": None}, 1),
        ({"user": "ANONYMOUS", "client-id": "p client"}, 4),
    ],
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_most_specific_quota_applies(sides: Sides, name: str) -> None:
    key = "producer_byte_rate"
    entries = [entry(parts, (key, factor * RATE)) for parts, factor in LIMITS[name]]

    def act(address: str) -> list[int]:
        set_quota(address, *entries)
        try:
            return [ask(address, "p client", produce(500_000), 9).throttle_time_ms]
        finally:
            set_quota(address, *(entry(parts, (key, None)) for parts, _ in LIMITS[name]))

    told_by_both(sides, act)


STEPS: dict[str, list[tuple[Message, int]]] = {
    "topics over it are refused": [
        (create("m1", 8, "m2", "m3"), 7),
        (create("m4", 1), 7),
    ],
    "older clients are served and wait": [(create("m5", 8, "m6", "m7"), 5), (create("m8", 1), 5)],
    "what fails costs nothing": [
        (create(TOPIC, 90), 7),
        (create("m9", 11), 7),
        (create("m10", 1), 7),
        (create("m11", 1), 7),
    ],
    "looking costs as much": [(create("m12", 30, validate_only=True), 7), (create("m13", 1), 7)],
    "partitions and deletions": [
        (create("m14", 6), 7),
        (CreatePartitionsRequest([CreatePartitionsTopic("m14", 12, None)], timeout_ms=5000), 3),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="m14")], timeout_ms=5000), 6),
        (DeleteTopicsRequest(topic_names=["m14"], timeout_ms=5000), 4),
        (DeleteTopicsRequest(topic_names=["m14"], timeout_ms=5000), 4),
    ],
}


@pytest.mark.parametrize("name", STEPS)
def test_controller_mutations_are_limited(sides: Sides, name: str) -> None:
    codes: list[list[tuple[str, int, str | None]]] = []

    def act(address: str) -> list[int]:
        set_quota(address, entry(client(name), ("controller_mutation_rate", 1.0)))
        delays, seen = [], []
        for request, version in STEPS[name]:
            answer = ask(address, name, request, version)
            results = next(
                getattr(answer, each)
                for each in ("topics", "results", "responses")
                if hasattr(answer, each)
            )
            seen += sorted((r.name, r.error_code, r.error_message or None) for r in results)
            delays.append(answer.throttle_time_ms)
            time.sleep(0.2)  # Kafka's brokers learn of topics later
        codes.append(seen)
        return delays

    told_by_both(sides, act, within_ms=400)
    ours, kafka = codes
    assert ours == kafka
