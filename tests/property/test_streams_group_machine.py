"""Threads of a streams application join, leave, stall and crash in any order; topics change, and
the coordinator is lost now and then.
"""

from collections import Counter
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from penstock.config.streams import StreamsConfig
from penstock.coordinator.group.consumer.errors import FencedMemberEpoch, UnreleasedInstanceId
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    UnknownMemberId,
)
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.task import NOTHING, TaskId
from support.groups.group_transcript import GROUP
from support.groups.streams_members import (
    StreamsCluster,
    StreamsThread,
    internal,
    reading,
    settle,
    topology,
)

NUMBERS = st.integers(0, 4)
TOPOLOGY = topology(reading("0", "t", state_changelog_topics=[internal("c")]), reading("1", "u"))
GONE = (UnknownMemberId, FencedMemberEpoch, FencedInstanceId, GroupIdNotFound)
CONFIG = StreamsConfig(
    group_streams_assignment_interval_ms=0,
    group_streams_initial_rebalance_delay_ms=0,
    group_streams_num_standby_replicas=1,
)


class StreamsGroupMachine(RuleBasedStateMachine):
    """No task is active twice, and none is twice in a process; the log holds the whole state; and a
    group that is left alone becomes stable, with every task active.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster = StreamsCluster(config=CONFIG)
        self.counts = {"t": 3, "u": 2}
        self._set_topics()
        self.serial = 0
        self.threads = [self._thread(number) for number in range(5)]

    def _set_topics(self, *missing: str) -> None:
        counts = {**self.counts, "c": self.counts["t"]}
        self.cluster.set_topics(**{k: v for k, v in counts.items() if k not in missing})

    def _thread(self, number: int) -> StreamsThread:
        self.serial += 1
        return StreamsThread(
            self.cluster, f"m{number}-{self.serial}", f"p{number // 2}", topology=TOPOLOGY
        )

    def _instance(self, number: int) -> str | None:
        return f"i{number}" if number < 2 else None

    def _join(self, number: int) -> None:
        self.threads[number].join(instance_id=self._instance(number))

    def _drop(self, thread: StreamsThread) -> None:
        thread.epoch, thread.has = 0, NOTHING

    @rule(number=NUMBERS)
    def join(self, number: int) -> None:
        self._join(number)

    @rule(number=NUMBERS, deaf=st.booleans(), slow=st.booleans())
    def beat(self, number: int, deaf: bool, slow: bool) -> None:
        """A deaf member misses the response; a slow one has not given up anything yet."""
        thread = self.threads[number]
        if not thread.epoch:
            return
        epoch, had = thread.epoch, thread.has
        try:
            thread.beat()
        except GONE:
            self._drop(thread)
            return
        if deaf:
            thread.epoch, thread.has = epoch, had
        elif slow:
            thread.has |= had

    @rule(number=NUMBERS)
    def leave(self, number: int) -> None:
        thread = self.threads[number]
        if thread.epoch:
            with suppress(*GONE):
                self.cluster.beat(member_id=thread.id, epoch=-1)
            self._drop(thread)

    @rule(number=st.integers(0, 1), is_new=st.booleans())
    def restart_static(self, number: int, is_new: bool) -> None:
        """It leaves for a while, and comes back, perhaps under another id."""
        thread = self.threads[number]
        if not thread.epoch:
            return
        try:
            self.cluster.beat(member_id=thread.id, epoch=-2, instance_id=self._instance(number))
        except GONE:
            self._drop(thread)
            return
        self._drop(thread)
        if is_new:
            self.threads[number] = self._thread(number)
        self._join(number)

    @rule(number=st.integers(0, 1))
    def go_away(self, number: int) -> None:
        thread = self.threads[number]
        if thread.epoch:
            with suppress(*GONE):
                self.cluster.beat(member_id=thread.id, epoch=-2, instance_id=self._instance(number))
            self._drop(thread)

    @rule(number=st.integers(0, 1))
    def crash_static(self, number: int) -> None:
        """Its successor has another id, and is refused until the session has ended."""
        known = self._group().static_member(self._instance(number) or "")
        before, self.threads[number] = self.threads[number], self._thread(number)
        try:
            self._join(number)
            assert known is None or known.is_away
        except UnreleasedInstanceId:
            self.threads[number] = before

    @rule(milliseconds=st.sampled_from([10, 4999, 5001, 30_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.cluster.pass_ms(milliseconds)
        known = self._group().members
        for each in self.threads:
            if each.epoch and each.id not in known:
                self._drop(each)

    @rule(
        name=st.sampled_from("tu"), more=st.integers(0, 2), missing=st.sampled_from(["", "t", "c"])
    )
    def change_topics(self, name: str, more: int, missing: str) -> None:
        self.counts[name] += more
        self._set_topics(missing)

    @rule()
    def lose_the_coordinator(self) -> None:
        before = _durable(self._group())
        self.cluster.start()
        assert _durable(self._group()) == before

    def _group(self) -> StreamsGroup:
        shard = self.cluster.groups.shards()[0]
        return shard.streams_groups.get(GROUP, StreamsGroup(GROUP))

    @invariant()
    def no_task_is_held_twice(self) -> None:
        active: Counter[TaskId] = Counter()
        owned: Counter[TaskId] = Counter()
        for member in self._group().members.values():
            active.update(member.holds.active)
        for thread in self.threads:
            if thread.epoch:
                owned.update(thread.has.active)
        assert not active or max(active.values()) == 1
        assert not owned or max(owned.values()) == 1

    @invariant()
    def no_process_has_a_task_twice(self) -> None:
        held: Counter[tuple[str, TaskId]] = Counter()
        for member in self._group().members.values():
            held.update((member.process_id, task) for task in member.assigned.tasks)
        assert not held or max(held.values()) == 1

    @invariant()
    def members_own_no_more_than_the_coordinator_knows(self) -> None:
        for each in self.threads:
            member = self._group().members.get(each.id)
            if each.epoch and member is not None:
                assert each.has <= member.holds

    def teardown(self) -> None:
        self._set_topics()
        for number, each in enumerate(self.threads):
            if each.id in self._group().members:
                self._join(number)
        members = [each for each in self.threads if each.id in self._group().members]
        if self._group().members.keys() - {each.id for each in members}:
            return  # a static member is away: its tasks wait for it
        if members:
            settle(*members)
            tasks = [task for each in members for task in each.has.active]
            assert sorted(tasks) == sorted(
                TaskId(subtopology, index)
                for subtopology, name in (("0", "t"), ("1", "u"))
                for index in range(self.counts[name])
            )


def _durable(group: StreamsGroup) -> StreamsGroup:
    """The part of a group that is in records."""
    members = {
        name: replace(each, deadline_ms=0, rebalance_deadline_ms=None)
        for name, each in group.members.items()
    }
    return replace(
        group,
        members=members,
        topics_seen=None,
        configured=None,
        assigned_ms=None,
        delayed_until_ms=None,
        endpoint_epoch=0,
        description_due_ms=0,
    )


TestStreamsGroupMachine = StreamsGroupMachine.TestCase
TestStreamsGroupMachine.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=40
)
