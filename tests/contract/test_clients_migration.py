"""A group is rolled from the classic to the consumer protocol and back, one member at a time, while
records flow: none is lost, commits stay valid, and no partition ever has two owners.

The real Kafka must pass the same tests (`PENSTOCK_ORACLE=1`, or `make soak`).
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from clients.brokers import BROKERS, Target, parameters
from clients.librdkafka import LibrdkafkaClient
from clients.piped import PipedClient
from clients.programs import java_program
from clients.protocol import Client, Member, Record, RefusedError
from peers.kafka import KafkaCluster
from peers.lines import LineProcess
from peers.penstock import PenstockBroker
from peers.process import PeerError
from peers.tools import tool
from peers.workers import PenstockWorkers

pytestmark = pytest.mark.peer

DEADLINE_S = 60
PARTITIONS = 6

# Much shorter intervals than in production, to keep the tests quick.
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
}

Start = Callable[[str, str], Client]
"""start(bootstrap, group protocol) -> a client."""


def librdkafka(strategy: str) -> Start:
    def start(bootstrap: str, protocol: str) -> Client:
        if protocol == "consumer":
            return LibrdkafkaClient(bootstrap, "consumer")
        return LibrdkafkaClient(bootstrap, "classic", strategy)

    return start


def java(bootstrap: str, protocol: str) -> Client:
    return PipedClient(LineProcess(f"java {protocol}", [*java_program(), bootstrap, protocol]))


CLIENTS: dict[str, Start] = {
    "librdkafka, eager": librdkafka("range"),
    "librdkafka, cooperative": librdkafka("cooperative-sticky"),
    "java": java,
}


OPTIONS = [word for pair in SETTINGS.items() for word in ("--set", "=".join(map(str, pair)))]


@contextmanager
def penstock(folder: Path) -> Iterator[Target]:
    with PenstockBroker(*OPTIONS, folder=folder) as broker:
        yield broker


@contextmanager
def penstock_workers(folder: Path) -> Iterator[Target]:
    with PenstockWorkers(2, *OPTIONS, folder=folder) as broker:
        yield broker


@contextmanager
def kafka(folder: Path) -> Iterator[Target]:
    with KafkaCluster(settings=SETTINGS, folder=folder) as cluster:
        yield cluster


@pytest.fixture(params=parameters(BROKERS))
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    starts = {"penstock": penstock, "penstock_workers": penstock_workers, "kafka": kafka}
    start = starts[request.param]
    with start(tmp_path) as running:
        yield running


class Work:
    """Members that read and commit in turn while a producer keeps writing."""

    def __init__(self, producer: Client, topic: str) -> None:
        self.producer, self.topic = producer, topic
        self.members: dict[int, Member] = {}
        self.held: dict[int, set[tuple[str, int]]] = {}
        self.committed: dict[int, int] = {}
        self.produced: set[bytes] = set()
        self.read: set[bytes] = set()
        self._numbers = count()
        self._busy: set[int] = set()
        self._calls = ThreadPoolExecutor(max_workers=3)

    def add(self, place: int, member: Member) -> None:
        self.members[place] = member
        self.held[place] = set()

    def remove(self, place: int) -> None:
        self._while_others_read(place, self.members[place].leave)
        del self.members[place], self.held[place]

    def close(self) -> None:
        """All members leave: librdkafka can hang for ever in a member that is dropped without
        closing.
        """
        for place in list(self.members):
            self.remove(place)
        self._calls.shutdown()

    def round(self) -> None:
        """Produces a record to each partition, and lets each member read."""
        self._produce()
        self._turns()

    def _produce(self) -> None:
        records = [Record(b"%d" % next(self._numbers), partition=p) for p in range(PARTITIONS)]
        self.producer.produce(self.topic, records)
        self.produced |= {record.value for record in records if record.value is not None}

    def _turns(self) -> None:
        for place, member in self.members.items():
            if place not in self._busy:
                self._turn(place, member)

    def _while_others_read(self, place: int, call: Callable[[], None]) -> None:
        """Runs a member's call on another thread while this one polls the other members. The call
        waits behind the member's JoinGroup, which completes only when the others are polled and
        rejoin.
        """
        self._busy.add(place)
        made = self._calls.submit(call)
        while not wait([made], timeout=0.2).done:
            self._turns()
        self._busy.remove(place)
        made.result()

    def _turn(self, place: int, member: Member) -> None:
        poll = member.poll()
        self.held[place] = poll.assigned
        owners = [held for held in self.held.values() if held]
        assert sum(map(len, owners)) == len(set().union(*owners)), f"two owners: {self.held}"
        ends: dict[int, int] = {}
        for record in poll.records:
            assert record.partition is not None
            assert record.value is not None
            assert record.offset is not None
            begin = self.committed.get(record.partition, 0)
            assert record.offset >= begin, f"{record} is before what was committed, {begin}"
            self.read.add(record.value)
            ends[record.partition] = record.offset + 1
        for partition, end in ends.items():
            try:
                self._while_others_read(place, partial(member.commit, self.topic, partition, end))
            except (RefusedError, PeerError):
                continue  # the partition was revoked: its next owner reads the records again
            self.committed[partition] = end

    def settle(self) -> None:
        """Continues until all members have the same number of partitions."""
        share = PARTITIONS // len(self.members)
        deadline_s = time.monotonic() + DEADLINE_S
        while not all(len(held) == share for held in self.held.values()):
            assert time.monotonic() < deadline_s, f"not settled: {self.held}"
            self.round()

    def drain(self) -> None:
        """Reads until all produced records were read."""
        deadline_s = time.monotonic() + DEADLINE_S
        while missing := self.produced - self.read:
            assert time.monotonic() < deadline_s, f"lost: {missing}"
            self._turns()


UPGRADE = ["CONSUMER"] * 3
DOWNGRADE = ["CONSUMER", "CONSUMER", "CLASSIC"]
"""The group's protocol after each member is replaced."""


@pytest.mark.parametrize("start", CLIENTS.values(), ids=CLIENTS)
def test_a_group_is_rolled_to_the_other_protocol_and_back(broker: Target, start: Start) -> None:
    if isinstance(broker, KafkaCluster) and start is CLIENTS["librdkafka, cooperative"]:
        pytest.skip("Kafka takes what librdkafka sends along for the data of a custom assignor")
    with (
        closing(LibrdkafkaClient(broker.bootstrap)) as producer,
        closing(start(broker.bootstrap, "classic")) as classic,
        closing(start(broker.bootstrap, "consumer")) as consumer,
        closing(Work(producer, "t")) as work,
    ):
        producer.create_topic("t", partitions=PARTITIONS)
        for place in range(3):
            work.add(place, classic.join("g", "t"))
        work.settle()
        for client, kinds in (consumer, UPGRADE), (classic, DOWNGRADE):
            for place, kind in enumerate(kinds):
                work.remove(place)
                work.add(place, client.join("g", "t"))
                work.settle()
                assert producer.group_type("g") == kind
        work.drain()
    assert set(work.committed) == set(range(PARTITIONS))


def test_kafka_decodes_the_records_of_a_mixed_group(tmp_path: Path) -> None:
    """Uses the decoder of Kafka's coordinator, which knows every field."""
    with penstock(tmp_path) as broker:
        with (
            closing(LibrdkafkaClient(broker.bootstrap, "classic", "range")) as classic,
            closing(LibrdkafkaClient(broker.bootstrap, "consumer")) as consumer,
        ):
            classic.create_topic("t", partitions=PARTITIONS)
            work = Work(classic, "t")
            for place, client in enumerate((classic, consumer)):
                work.add(place, client.join("g", "t"))
                work.settle()
            for place in (1, 0):  # the group is classic again at the end
                work.remove(place)
        logs = broker.data_dir(0).glob("__consumer_offsets-*/*.log")
        (log,) = (each for each in logs if each.stat().st_size)
        printed = tool("kafka-dump-log", "--offsets-decoder", "--files", str(log)).stdout
    values = [
        json.loads(line.partition(" payload: ")[2])["data"]
        for line in printed.splitlines()
        if " payload: {" in line
    ]
    terms = [each["classicMemberMetadata"] for each in values if "classicMemberMetadata" in each]
    assert None in terms, "the member of the consumer protocol"
    assert any(each and each["supportedProtocols"][0]["name"] == "range" for each in terms), printed
    generations = [each for each in values if each.get("protocolType") == "consumer"]
    assert [each for each in generations if each["members"]], printed
