"""Members of our client join, poll, lose responses, are removed and leave, in any order.

Their coordinator is our own. Whatever happens, no partition has two owners that the coordinator
knows; and once things are quiet, every partition has one.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.client.membership.assignor import COOPERATIVE_STICKY, RANGE, ROUND_ROBIN
from penstock.client.membership.classic import ClassicMembership, ClassicSettings
from penstock.client.membership.consumer import ConsumerMembership, ConsumerSettings
from penstock.client.membership.member import Membership
from penstock.types import TopicPartition
from support.groups.consumer_members import Cluster
from support.groups.driven_members import DrivenMember
from support.groups.group_transcript import GROUP

NAMES = st.integers(0, 3)
Make = Callable[[str], Membership]

PROTOCOLS: dict[str, Make] = {
    "eager": lambda _: ClassicMembership(GROUP, ClassicSettings(assignors=(RANGE, ROUND_ROBIN))),
    "cooperative": lambda _: ClassicMembership(
        GROUP, ClassicSettings(assignors=(COOPERATIVE_STICKY,))
    ),
    "consumer": lambda name: ConsumerMembership(GROUP, name, ConsumerSettings()),
}


class MembershipMachine(RuleBasedStateMachine):
    make: Make

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.members: dict[int, DrivenMember] = {}
        self.started = 0

    @rule(number=NAMES)
    def start(self, number: int) -> None:
        if number not in self.members:
            self.started += 1
            name = f"{number}-{self.started}"
            member = DrivenMember(self.cluster, name, type(self).make(name))
            member.membership.subscribe({"t"})
            self.members[number] = member
            member.poll()

    @rule(number=NAMES, count=st.integers(1, 4))
    def step(self, number: int, count: int) -> None:
        for _ in range(count):
            if number in self.members:
                self.members[number].step()

    @rule(number=NAMES)
    def poll(self, number: int) -> None:
        if number in self.members:
            self.members[number].poll()

    @rule(number=NAMES)
    def lose_response(self, number: int) -> None:
        if number in self.members:
            self.members[number].lose_response()

    @rule(number=NAMES)
    def remove(self, number: int) -> None:
        if number in self.members:
            self.members[number].removed_by_admin()

    @rule(number=NAMES)
    def leave(self, number: int) -> None:
        if number in self.members:
            member = self.members.pop(number)
            member.lose_response()
            member.membership.leave()
            for _ in range(4):
                member.step()

    @rule(milliseconds=st.integers(1, 3_000))
    def pass_time(self, milliseconds: int) -> None:
        """Only briefly: a member would not notice the end of its session."""
        self.cluster.pass_ms(milliseconds)
        for member in self.members.values():
            member.step()

    @rule(partitions=st.integers(1, 6))
    def grow(self, partitions: int) -> None:
        if partitions > len(self.cluster.topics["t"].partitions):
            self.cluster.set_topics(t=partitions)

    @precondition(lambda self: self.members)
    @rule()
    def settle(self) -> None:
        for _ in range(20):
            for member in self.members.values():
                for _ in range(3):
                    member.poll()
                    member.step()
            self.cluster.pass_ms(1_000)
        held = Counter(each for member in self.members.values() for each in member.owned)
        known = {each for member in self.members.values() for each in member.owned}
        everything = {TopicPartition("t", each) for each in range(4)}
        assert held.total() == len(known), "no partition is held twice"
        assert known >= everything

    @invariant()
    def owners_are_single(self) -> None:
        held = Counter(
            each for member in self.members.values() if not member.removed for each in member.owned
        )
        assert all(count == 1 for count in held.values()), held


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_partition_has_two_owners(protocol: str) -> None:
    machine = type("Machine", (MembershipMachine,), {"make": staticmethod(PROTOCOLS[protocol])})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=20, stateful_step_count=30, deadline=None)
    )
