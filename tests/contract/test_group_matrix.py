"""Each client's groups grow, shrink and lose members; `make soak` runs the long forms."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from clients.brokers import GROUP_BROKERS, Target, parameters
from clients.catalog import Name, over
from clients.piped import PipedClient
from clients.programs import go_program, java_program, node_program
from clients.protocol import Client, Member, Record
from peers.lines import LineProcess

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(240),
    pytest.mark.parametrize("target", parameters(GROUP_BROKERS), indirect=True, scope="session"),
]

DEADLINE_S = 60


def shares(members: Sequence[Member], *sizes: int) -> list[set[tuple[str, int]]]:
    """Polls until the members hold `sizes` partitions, in any order."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        held = [member.poll().assigned for member in members]
        whole = set().union(*held)
        if sorted(map(len, held)) == sorted(sizes) and len(whole) == sum(sizes):
            return held
        assert time.monotonic() < deadline_s, f"{held} is no share of {sizes}"


def leave(members: Sequence[Member]) -> None:
    for each in members:
        each.leave()


def gathered(client: Client, group: str, topic: str, count: int, partitions: int) -> list[Member]:
    """Starts `count` members one after the other. Two that start at the same time in one thread
    would, with some clients, block each other for ever.
    """
    members: list[Member] = []
    for number in range(1, count + 1):
        members.append(client.join(group, topic))
        size, longer = divmod(partitions, number)
        shares(members, *[size + 1] * longer, *[size] * (number - longer))
    return members


def scaled(client: Client, referee: Client, topic: str, most: int) -> None:
    """Grows from one member to `most` and back; every time, each partition has exactly one
    owner.
    """
    referee.create_topic(topic, partitions=most)
    members = gathered(client, topic, topic, most, most)
    while len(members) > 1:
        members.pop().leave()
    shares(members, most)
    leave(members)


@pytest.mark.row("A013")
@over("members in turn")
def test_a_group_grows_to_three_members_and_back(
    client: Client, referee: Client, topic: str
) -> None:
    scaled(client, referee, topic, 3)


@pytest.mark.soak
@over("members in turn")
def test_a_group_grows_to_ten_members_and_back(client: Client, referee: Client, topic: str) -> None:
    scaled(client, referee, topic, 10)


@pytest.mark.row("A033", "A163")
@over("members in turn")
def test_members_without_partitions_are_idle_and_take_over(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, partitions=2)
    members = gathered(client, topic, topic, 3, 2)
    held = shares(members, 0, 1, 1)
    busy = next(number for number, share in enumerate(held) if share)
    members.pop(busy).leave()
    shares(members, 1, 1)
    leave(members)


@pytest.mark.row("A010")
@over("members in turn")
def test_a_group_reads_each_record_once_between_its_members(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, partitions=4)
    members = gathered(client, topic, topic, 2, 4)
    wanted = [b"%d" % number for number in range(40)]
    for partition in range(4):
        referee.produce(topic, [Record(each, partition=partition) for each in wanted[partition::4]])
    found: list[list[bytes | None]] = [[], []]
    deadline_s = time.monotonic() + DEADLINE_S
    while sum(map(len, found)) < len(wanted):
        for values, member in zip(found, members, strict=True):
            values += [record.value for record in member.poll().records]
        assert time.monotonic() < deadline_s, found
    assert sorted(value or b"" for values in found for value in values) == sorted(wanted)
    assert [len(values) for values in found] == [20, 20]
    leave(members)


PROGRAMS: dict[Name, Callable[[], list[str]]] = {
    "java": java_program,
    "franz-go": lambda: go_program("franz"),
    "sarama": lambda: go_program("sarama"),
    "kafkajs": lambda: node_program("kafkajs"),
}
"""Clients in separate processes, which can be killed. Their sessions last up to 45 s."""


@pytest.mark.soak
@pytest.mark.parametrize("name", PROGRAMS)
def test_partitions_of_a_killed_member_go_to_the_others(
    name: Name, target: Target, referee: Client, topic: str
) -> None:
    referee.create_topic(topic, partitions=2)
    doomed = LineProcess(name, [*PROGRAMS[name](), target.bootstrap])
    with closing(PipedClient(LineProcess(name, [*PROGRAMS[name](), target.bootstrap]))) as client:
        members = [client.join(topic, topic), PipedClient(doomed).join(topic, topic)]
        shares(members, 1, 1)
        os.kill(doomed.pid, signal.SIGKILL)
        assert shares(members[:1], 2) == [{(topic, 0), (topic, 1)}]
        members[0].leave()
    doomed.close()
