"""Members of the consumer protocol join, leave, stall and crash in any order; topics change, and
the coordinator is lost now and then.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from penstock.coordinator.group.consumer.errors import FencedMemberEpoch, UnreleasedInstanceId
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import (
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    fast_heartbeat,
    heartbeat,
    interval_ms,
)
from penstock.coordinator.group.consumer.member import NO_PARTITIONS
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    UnknownMemberId,
)
from support.groups.consumer_members import Cluster, Consumer, durable, settle
from support.groups.group_transcript import GROUP

NUMBERS = st.integers(0, 4)
WISHES = st.frozensets(st.sampled_from(["t", "u", "none"]))


class ConsumerGroupMachine(RuleBasedStateMachine):
    """No two members ever own the same partition; the log holds the whole state; and a group that
    is left alone becomes stable, with every partition assigned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.cluster.set_topics(t=4, u=3)
        self.serial = 0
        self.consumers = [self._consumer(number) for number in range(5)]

    def _consumer(self, number: int) -> Consumer:
        self.serial += 1
        static = f"i{number}" if number < 2 else None
        return Consumer(self.cluster, f"c{number}-{self.serial}", static)

    @rule(number=NUMBERS, topics=WISHES)
    def join(self, number: int, topics: frozenset[str]) -> None:
        consumer = self.consumers[number]
        consumer.topics = topics
        consumer.join()

    @rule(number=NUMBERS, deaf=st.booleans(), slow=st.booleans())
    def beat(self, number: int, deaf: bool, slow: bool) -> None:
        """A deaf member misses the response; a slow one has not revoked anything yet."""
        consumer = self.consumers[number]
        if not consumer.epoch:
            return
        epoch, had = consumer.epoch, consumer.has
        try:
            consumer.beat()
        except (UnknownMemberId, FencedMemberEpoch, FencedInstanceId, GroupIdNotFound):
            consumer.epoch, consumer.has = 0, NO_PARTITIONS
            return
        if deaf:
            consumer.epoch, consumer.has = epoch, had
        elif slow:
            consumer.has |= had

    @rule(number=NUMBERS)
    def leave(self, number: int) -> None:
        consumer = self.consumers[number]
        if consumer.epoch:
            try:
                consumer.leave()
            except (UnknownMemberId, FencedInstanceId, GroupIdNotFound):
                consumer.epoch, consumer.has = 0, NO_PARTITIONS

    @rule(number=st.integers(0, 1), waits=st.booleans())
    def restart_static(self, number: int, waits: bool) -> None:
        """The member leaves temporarily, or crashes; another process takes its place."""
        consumer = self.consumers[number]
        if not consumer.epoch:
            return
        try:
            if not waits:
                consumer.leave(-2)
            self.consumers[number] = new = self._consumer(number)
            new.topics = consumer.topics
            new.join()
        except (UnreleasedInstanceId, UnknownMemberId, FencedInstanceId, GroupIdNotFound):
            self.consumers[number] = consumer
        if consumer is not self.consumers[number]:
            return
        consumer.epoch, consumer.has = 0, NO_PARTITIONS
        self.cluster.pass_ms(45_001)
        for each in self.consumers:
            each.epoch, each.has = 0, NO_PARTITIONS  # all their sessions have ended

    @rule(milliseconds=st.sampled_from([10, 4999, 5001, 30_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.cluster.pass_ms(milliseconds)
        self._drop_removed()

    def _drop_removed(self) -> None:
        """A client notices the end of its session, and then owns nothing."""
        known = self._group().members
        for each in self.consumers:
            if each.epoch and each.id not in known:
                each.epoch, each.has = 0, NO_PARTITIONS

    @rule(t=st.integers(1, 6), u=st.integers(0, 3))
    def change_topics(self, t: int, u: int) -> None:
        self.cluster.set_topics(t=t, **({"u": u} if u else {}))

    @rule()
    def lose_the_coordinator(self) -> None:
        before = durable(self._group())
        self.cluster.start()
        assert durable(self._group()) == before

    def _group(self) -> ConsumerGroup:
        return self.cluster.shard.consumer_groups.get(GROUP, ConsumerGroup(GROUP))

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [each.has for each in self.consumers if each.epoch]
        assert sum(map(len, owned)) == len(NO_PARTITIONS.union(*owned))
        held = [each.holds for each in self._group().members.values()]
        assert sum(map(len, held)) == len(NO_PARTITIONS.union(*held))

    @invariant()
    def members_own_no_more_than_the_coordinator_knows(self) -> None:
        for each in self.consumers:
            member = self._group().members.get(each.id)
            if each.epoch and member is not None:
                assert each.has <= member.holds

    @invariant()
    def a_fast_heartbeat_comes_to_the_same_as_a_slow_one(self) -> None:
        group, shard, now = self._group(), self.cluster.shard, self.cluster.groups.runtime.now()
        for member in group.members.values():
            for instance_id in {None, member.instance_id}:
                request = ConsumerHeartbeat(
                    member_id=member.id, epoch=member.epoch, instance_id=instance_id
                )
                context = shard.context(GROUP, now)
                after = fast_heartbeat(group, request, context)
                if after is not None:
                    draft = shard.consumer_draft(group, now)
                    reply = heartbeat(draft, request)
                    assert draft.group == replace(group, members={**group.members, after.id: after})
                    assert (draft.records, draft.finished) == ([], [])
                    expected = ConsumerHeartbeatReply(
                        after.id, after.epoch, interval_ms(group, context)
                    )
                    assert reply == expected

    def teardown(self) -> None:
        members = [each for each in self.consumers if each.id in self._group().members]
        for each in members:
            each.join(topics=frozenset({"t", "u"}))
        gone = self._group().members.keys() - {each.id for each in members}
        if gone:
            return  # a static member is away: its partitions stay reserved
        if members:
            settle(*members)
            everything = sum(len(each.partitions) for each in self.cluster.topics.values())
            assert sum(len(each.has) for each in members) == everything


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=40
)
