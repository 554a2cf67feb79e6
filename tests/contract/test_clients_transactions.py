"""Transactions through each client: visible as a whole once committed, and never if aborted."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clients.catalog import over
from clients.protocol import Client, Member, Record, RefusedError, Transactor
from peers.process import wait_until
from penstock.errors import ErrorCode

pytestmark = [pytest.mark.peer, pytest.mark.timeout(120)]

DEADLINE_S = 30
LOOKS = 5
"""How often a consumer is polled to check that it sees nothing."""

FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
"""Older clients report a fenced producer by the second code."""


@contextmanager
def transactor(client: Client, transactional_id: str) -> Iterator[Transactor]:
    made = client.transactor(transactional_id)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def reader(client: Client, topic: str) -> Iterator[Member]:
    member = client.join(topic, topic, isolation="read_committed")
    try:
        yield member
    finally:
        member.leave()


def records(*values: str) -> list[Record]:
    return [Record(value.encode(), partition=0) for value in values]


def read(member: Member, count: int) -> list[str]:
    values: list[str] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while len(values) < count:
        assert time.monotonic() < deadline_s, f"{values} are not {count}"
        values += _values(member)
    return values


def look(member: Member) -> list[str]:
    """What the member still receives although it has read everything."""
    return [value for _ in range(LOOKS) for value in _values(member)]


def _values(member: Member) -> list[str]:
    return [(record.value or b"").decode() for record in member.poll().records]


def write(by: Transactor, topic: str, *values: str, commits: bool) -> None:
    by.begin()
    by.send(topic, records(*values))
    by.end(commits=commits)


@pytest.mark.row("A112")
@over("transactions")
def test_committed_records_are_visible_and_aborted_ones_are_not(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    with transactor(client, topic) as writer, reader(client, topic) as member:
        for number in range(6):
            kept = number % 2 == 0
            write(writer, topic, f"{number}-a", f"{number}-b", commits=kept)
        assert read(member, 6) == ["0-a", "0-b", "2-a", "2-b", "4-a", "4-b"]
        assert look(member) == []
    everything = 6 * 2 + 6  # each transaction ends with a marker
    wait_until(lambda: referee.offset(topic, 0, -1) == everything, DEADLINE_S, "the last marker")


@pytest.mark.row("A110")
@over("transactions")
def test_a_transaction_covers_several_topics_and_partitions(
    client: Client, referee: Client, topic: str
) -> None:
    names = [f"{topic}-a", f"{topic}-b"]
    for name in names:
        referee.create_topic(name, partitions=2)
    member = client.join(topic, *names, isolation="read_committed")
    with transactor(client, topic) as writer:
        for commits in (False, True):
            writer.begin()
            for name in names:
                writer.send(name, [Record(f"{commits}".encode(), partition=at) for at in (0, 1)])
            writer.end(commits=commits)
        assert read(member, 4) == ["True"] * 4
    member.leave()


@over("transactions")
def test_an_open_transaction_and_later_records_are_not_visible(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    with (
        transactor(client, f"{topic}-slow") as slow,
        transactor(client, f"{topic}-quick") as quick,
        reader(client, topic) as member,
    ):
        write(quick, topic, "before", commits=True)
        assert read(member, 1) == ["before"]
        slow.begin()
        slow.send(topic, records("open"))
        write(quick, topic, "behind", commits=True)
        assert look(member) == []
        slow.end(commits=True)
        assert read(member, 2) == ["open", "behind"]


@pytest.mark.row("A113")
@over("transactions")
def test_a_second_producer_of_the_same_id_fences_the_first(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    with transactor(client, topic) as zombie, reader(client, topic) as member:
        zombie.begin()
        zombie.send(topic, records("of the first"))
        with transactor(client, topic) as heir:
            heir.begin()
            with pytest.raises(RefusedError) as refused:
                zombie.end(commits=True)
            assert refused.value.code in FENCED
            heir.send(topic, records("of the second"))
            heir.end(commits=True)
            assert read(member, 1) == ["of the second"]
            assert look(member) == []


@over("transactions")
def test_each_client_reads_the_transactions_of_another(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    with transactor(referee, topic) as writer, reader(client, topic) as member:
        write(writer, topic, "aborted", commits=False)
        write(writer, topic, "committed", commits=True)
        assert read(member, 1) == ["committed"]
