"""Consume, transform, produce in transactions, with each client: exactly once despite kills.

Programs that abort at random copy a topic while a second one joins, the first is killed and comes
back, and the second leaves. The copy must hold every record once, in the order of its partition.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from clients.brokers import BROKERS, Target, parameters
from clients.catalog import Name
from clients.copying.programs import COPIERS
from clients.protocol import Client, Isolation, Record
from clients.referee import Referee
from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import Process, last_lines

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]

PARTITIONS = 4
WAIT_S = 45
ABORT_CHANCE = "0.25"
SETTINGS = {"group.min.session.timeout.ms": 1000, "group.initial.rebalance.delay.ms": 0}
COORDINATOR_TO_COME = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
SEEDS = range(5) if os.environ.get("PENSTOCK_SOAK") else range(1)


@pytest.fixture(scope="module", params=parameters(BROKERS))
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Separate brokers, with short sessions so that a killed member is removed after seconds."""
    if request.param == "kafka":
        with KafkaCluster(settings=SETTINGS) as kafka:
            yield kafka
    else:
        options = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        with PenstockBroker(*options) as penstock:
            yield penstock


@pytest.fixture(scope="module")
def referee(target: Target) -> Iterator[Client]:
    client = Referee(target.bootstrap)
    yield client
    client.close()


class Group:
    """The members of the group as the broker describes them."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def members(self) -> dict[str, int]:
        """How many partitions each member holds once the group is stable."""
        try:
            described = self._admin.describe_consumer_groups([self.name])[self.name].result(WAIT_S)
        except KafkaException as failed:
            if failed.args[0].code() not in COORDINATOR_TO_COME:
                raise
            return {}
        if described.state.name != "STABLE":
            return {}
        return {each.member_id: len(each.assignment.topic_partitions) for each in described.members}

    def wait_for(self, *shares: int, by: Process, other_than: Collection[str] = ()) -> None:
        """Waits for these share sizes. A killed member stays in the group until its session
        expires; with `other_than`, the members must differ from those.
        """

        def reached() -> bool:
            members = self.members()
            return sorted(members.values()) == list(shares) and set(members) != set(other_than)

        by.wait_until(reached, WAIT_S)


def seen(
    bootstrap: str, topic: str, isolation: Isolation = "read_committed"
) -> dict[int, list[bytes]]:
    """Everything that consumers of this isolation level see of each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
        }
    )
    found: dict[int, list[bytes]] = {at: [] for at in range(PARTITIONS)}
    reader.assign([TopicPartition(topic, at, 0) for at in found])
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = reader.poll(WAIT_S)
        assert message is not None
        if message.error():
            ended.add(message.partition() or 0)
        else:
            found[message.partition() or 0].append(message.value() or b"")
    reader.close()
    return found


class Source:
    """A topic that is filled in rounds, and the values that it holds."""

    def __init__(self, client: Client, topic: str) -> None:
        client.create_topic(topic, partitions=PARTITIONS)
        self._client, self._topic, self._numbers = client, topic, count()
        self.values: dict[int, list[bytes]] = {at: [] for at in range(PARTITIONS)}

    def feed(self, records: int) -> None:
        numbers = [next(self._numbers) for _ in range(records)]
        batch = [Record(b"%d" % number, partition=number % PARTITIONS) for number in numbers]
        self._client.produce(self._topic, batch)
        for record in batch:
            self.values[record.partition or 0].append(record.value or b"")

    def copies(self) -> Mapping[int, list[bytes]]:
        return {at: [b"copy of " + value for value in some] for at, some in self.values.items()}


def size(values: Mapping[int, list[bytes]]) -> int:
    return sum(map(len, values.values()))


def end(client: Client, topic: str) -> int:
    """The number of records and transaction markers, whether committed or aborted."""
    return sum(client.offset(topic, at, -1) for at in range(PARTITIONS))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", COPIERS)
def test_a_copy_holds_each_record_once(
    name: Name, seed: int, target: Target, referee: Client, topic: str, tmp_path: Path
) -> None:
    source, copy = Source(referee, topic), f"{topic}-copy"
    referee.create_topic(copy, partitions=PARTITIONS)
    group = Group(target.bootstrap, topic)

    def program(which: str) -> Process:
        folder = tmp_path / which
        folder.mkdir()
        what = [target.bootstrap, group.name, f"{topic}-{which}", topic, copy, ABORT_CHANCE]
        return Process(f"{name} {which}", [*COPIERS[name](), *what], folder)

    first, second = program("first"), program("second")
    try:
        first.start()
        source.feed(200)
        group.wait_for(4, by=first)
        second.start()
        group.wait_for(2, 2, by=second)

        before = end(referee, copy)
        source.feed(2000)
        # The first program is now working, at an arbitrary point of a transaction.
        first.wait_until(lambda: end(referee, copy) > before + 100 * (seed + 1), WAIT_S)
        members = group.members()
        first.kill()
        first.start()
        source.feed(200)
        group.wait_for(2, 2, by=first, other_than=members)

        second.stop()
        source.feed(200)
        group.wait_for(4, by=first)
        wanted = source.copies()
        first.wait_until(lambda: size(seen(target.bootstrap, copy)) >= size(wanted), WAIT_S)
    finally:
        for each in (first, second):
            each.stop()
            print(last_lines(each.output) if each.output.exists() else "")
    assert seen(target.bootstrap, copy) == wanted
    everything = seen(target.bootstrap, copy, "read_uncommitted")
    assert size(everything) > size(wanted), "nothing was aborted, so that nothing was shown"
