"""Groups through each client: subscribe, commit, and share partitions as members come and go."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from clients.brokers import GROUP_BROKERS, parameters
from clients.catalog import over
from clients.protocol import Client, Member, Record

pytestmark = [
    pytest.mark.peer,
    pytest.mark.parametrize("target", parameters(GROUP_BROKERS), indirect=True, scope="session"),
]

DEADLINE_S = 30


@contextmanager
def joined(client: Client, group: str, *topics: str) -> Iterator[Member]:
    member = client.join(group, *topics)
    try:
        yield member
    finally:
        member.leave()


def read(member: Member, count: int) -> list[Record]:
    records: list[Record] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while len(records) < count:
        assert time.monotonic() < deadline_s, f"{len(records)} of {count} records came"
        records += member.poll().records
    return records


def shares(members: Sequence[Member], *sizes: int) -> list[set[tuple[str, int]]]:
    """Polls all members until they hold `sizes` partitions; returns their assignments."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        held = [member.poll().assigned for member in members]
        if [len(share) for share in held] == list(sizes):
            return held
        assert time.monotonic() < deadline_s, f"{held} is no share of {sizes}"


@pytest.fixture
def five(referee: Client, topic: str) -> str:
    """A topic of one partition with the values 0 to 4."""
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"%d" % number, partition=0) for number in range(5)])
    return topic


@pytest.mark.row("A035")
@over()
def test_a_member_reads_every_partition_of_its_topics(
    client: Client, referee: Client, topic: str
) -> None:
    topics = [f"{topic}-a", f"{topic}-b"]
    values = set()
    for name in topics:
        referee.create_topic(name, partitions=2)
        for partition in range(2):
            values.add(f"{name}/{partition}".encode())
            referee.produce(name, [Record(f"{name}/{partition}".encode(), partition=partition)])
    with joined(client, topic, *topics) as member:
        assert {record.value for record in read(member, 4)} == values


@pytest.mark.row("A010", "A012", "A034")
@over()
def test_each_group_reads_everything(client: Client, five: str) -> None:
    for group in ("one", "other"):
        with joined(client, f"{five}-{group}", five) as member:
            assert [record.offset for record in read(member, 5)] == [0, 1, 2, 3, 4]


@over("commit")
def test_the_next_member_continues_after_the_commit(client: Client, five: str) -> None:
    with joined(client, five, five) as member:
        read(member, 5)
        member.commit(five, 0, 3)
    with joined(client, five, five) as member:
        assert [record.offset for record in read(member, 2)] == [3, 4]


@over("commit")
def test_another_client_continues_after_its_commit(
    client: Client, referee: Client, five: str
) -> None:
    with joined(client, five, five) as member:
        read(member, 5)
        member.commit(five, 0, 2)
    with joined(referee, five, five) as member:
        assert [record.offset for record in read(member, 3)] == [2, 3, 4]


@pytest.mark.row("A048")
@over()
def test_members_share_the_partitions_as_they_come_and_go(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, partitions=4)
    everything = {(topic, partition) for partition in range(4)}
    with joined(client, topic, topic) as first:
        assert shares([first], 4) == [everything]
        with joined(client, topic, topic) as second:
            here, there = shares([first, second], 2, 2)
            assert here | there == everything
        assert shares([first], 4) == [everything]
