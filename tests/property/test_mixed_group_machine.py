"""Members of both protocols join, leave, stall and crash in one group, in any order. The group
changes its protocol as often, topics are created and extended, and the coordinator is lost now and
then.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.errors import FencedMemberEpoch
from penstock.coordinator.group.consumer.member import NO_PARTITIONS
from penstock.coordinator.group.errors import GroupIdNotFound, UnknownMemberId
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.records import metadata_of
from penstock.types import TopicPartition
from support.groups.classic_members import ClassicConsumer
from support.groups.consumer_members import Cluster, Consumer, durable
from support.groups.group_transcript import GROUP

NUMBERS = st.integers(0, 2)
POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
ROUNDS = 40


class MixedGroupMachine(RuleBasedStateMachine):
    """No two members ever own the same partition, whatever their protocols; accepted commits stand;
    the log holds the whole state; and a group that is left alone becomes stable, with every
    partition assigned.
    """

    @initialize(
        cooperative=st.booleans(),
        policy=st.sampled_from(POLICIES),
        interval_ms=st.sampled_from([0, 1000]),
    )
    def begin(self, cooperative: bool, policy: str, interval_ms: int) -> None:
        config = GroupConfig(
            group_consumer_migration_policy=policy,
            group_consumer_assignment_interval_ms=interval_ms,
        )
        self.cluster = Cluster(config=config)
        self.cluster.set_topics(t=3)
        self.classic = [
            ClassicConsumer(self.cluster, f"a{number}", cooperative) for number in range(3)
        ]
        self.consumers = [Consumer(self.cluster, f"b{number}") for number in range(3)]
        self.missed: set[int] = set()
        self.committed: dict[TopicPartition, int] = {}

    @property
    def everybody(self) -> list[ClassicConsumer | Consumer]:
        return [*self.classic, *self.consumers]

    @rule(number=NUMBERS, both=st.booleans())
    def join(self, number: int, both: bool) -> None:
        member = self.classic[number]
        if member.joining is None:
            member.topics = frozenset({"t", "u"} if both else {"t"})
            member.join()
            self._deliver()

    @rule(number=NUMBERS)
    def sync(self, number: int) -> None:
        if self.classic[number].syncing is None:
            self.classic[number].sync()
            self._deliver()

    @rule(number=NUMBERS)
    def beat(self, number: int) -> None:
        self.classic[number].beat()

    @rule(number=NUMBERS)
    def leave(self, number: int) -> None:
        self.classic[number].leave()
        self._deliver()

    @rule(number=NUMBERS)
    def die(self, number: int) -> None:
        self.classic[number].forget()

    @rule(number=NUMBERS, both=st.booleans())
    def enter(self, number: int, both: bool) -> None:
        consumer = self.consumers[number]
        consumer.topics = frozenset({"t", "u"} if both else {"t"})
        try:
            consumer.join()
        except GroupIdNotFound:
            assert GROUP in self.cluster.shard.classic_groups, (
                "a classic group that must not be upgraded"
            )
            consumer.epoch, consumer.has = 0, NO_PARTITIONS
        self._deliver()

    @rule(number=NUMBERS, deaf=st.booleans(), slow=st.booleans())
    def live(self, number: int, deaf: bool, slow: bool) -> None:
        """A deaf member misses the response, and sends a full heartbeat the next time; a slow one
        has not revoked anything yet.
        """
        consumer = self.consumers[number]
        if not consumer.epoch:
            return
        epoch, had = consumer.epoch, consumer.has
        everything = {"rebalance_timeout_ms": 5000, "topics": consumer.topics}
        said = everything if number in self.missed else {}
        self.missed.discard(number)
        try:
            consumer.beat(**said)
        except (UnknownMemberId, FencedMemberEpoch, GroupIdNotFound):
            consumer.epoch, consumer.has = 0, NO_PARTITIONS
            return
        if deaf:
            consumer.epoch, consumer.has = epoch, had
            self.missed.add(number)
        elif slow:
            consumer.has |= had

    @rule(number=NUMBERS)
    def exit(self, number: int) -> None:
        consumer = self.consumers[number]
        if consumer.epoch:
            try:
                consumer.leave()
            except (UnknownMemberId, GroupIdNotFound):
                consumer.epoch, consumer.has = 0, NO_PARTITIONS
            self._deliver()

    @rule(number=st.integers(0, 5), offset=st.integers(0, 99))
    def commit(self, number: int, offset: int) -> None:
        """A refused member has another epoch or generation, or waits for its assignment."""
        member = self.everybody[number]
        epoch = member.generation if isinstance(member, ClassicConsumer) else member.epoch
        topic_partition = TopicPartition("t", 0)
        committer = Committer(generation=epoch, member_id=member.id, knows_epochs=True)
        pending = self.cluster.groups.commit(
            GROUP, committer, ((topic_partition, CommittedOffset(offset)),)
        )
        if pending.reply == (None,):
            self.committed[topic_partition] = offset

    @rule(milliseconds=st.sampled_from([10, 1000, 4999, 5001, 20_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.cluster.pass_ms(milliseconds)
        self._deliver()

    @rule(t=st.integers(0, 1), u=st.integers(0, 1))
    def grow_topics(self, t: int, u: int) -> None:
        """A topic is created with its first partition."""
        counts = {name: len(topic.partitions) for name, topic in self.cluster.topics.items()}
        self.cluster.set_topics(t=counts["t"] + t, **_there(u=counts.get("u", 0) + u))

    @rule()
    def lose_the_coordinator(self) -> None:
        before, classic = self.cluster.shard.consumer_groups.get(GROUP), self._stable()
        self.cluster.start()
        after = self.cluster.shard.consumer_groups.get(GROUP)
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert durable(before) == durable(after)
        if classic is not None:
            assert metadata_of(self.cluster.shard.classic_groups[GROUP]) == classic
        for member in self.classic:
            member.lose_replies()
        self._deliver()

    def _stable(self) -> object:
        group = self.cluster.shard.classic_groups.get(GROUP)
        return metadata_of(group) if group and group.state is ClassicGroupState.STABLE else None

    def _deliver(self) -> None:
        """Deliver replies; a removed member knows by its clock, and owns nothing."""
        for member in self.classic:
            member.receive_replies()
        shard = self.cluster.shard
        group = shard.consumer_groups.get(GROUP) or shard.classic_groups.get(GROUP)
        known = group.members if group is not None else {}
        for member in self.classic:
            if member.id and member.id not in known:
                member.forget()
        for consumer in self.consumers:
            if consumer.epoch and consumer.id not in known:
                consumer.epoch, consumer.has = 0, NO_PARTITIONS

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [member.has for member in self.everybody]
        assert sum(map(len, owned)) == len(NO_PARTITIONS.union(*owned))
        group = self.cluster.shard.consumer_groups.get(GROUP)
        if group is not None:
            held = [each.holds for each in group.members.values()]
            assert sum(map(len, held)) == len(NO_PARTITIONS.union(*held))

    @invariant()
    def a_group_is_of_one_kind(self) -> None:
        shard = self.cluster.shard
        assert not (GROUP in shard.classic_groups and GROUP in shard.consumer_groups)

    @invariant()
    def offsets_are_those_of_accepted_commits(self) -> None:
        found = self.cluster.shard.offsets.get(GROUP, {})
        assert {
            topic_partition: each.offset for topic_partition, each in found.items()
        } == self.committed

    def teardown(self) -> None:
        """Left alone, the members own every partition."""
        if not hasattr(self, "cluster"):
            return
        for _ in range(ROUNDS):
            for member in filter(lambda each: each.id, self.classic):
                member.step()
                self._deliver()
            for number in range(3):
                self.live(number, deaf=False, slow=False)
            self.cluster.pass_ms(1001)
            self._deliver()
        members = [*filter(_is_member, self.everybody)]
        wanted = frozenset[str]().union(*(each.topics for each in members))
        topics = self.cluster.topics
        everything = sum(len(topics[name].partitions) for name in wanted & topics.keys())
        assert sum(len(each.has) for each in members) == everything


def _there(**counts: int) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _is_member(each: ClassicConsumer | Consumer) -> bool:
    return bool(each.id) if isinstance(each, ClassicConsumer) else bool(each.epoch)


TestMixedGroupMachine = MixedGroupMachine.TestCase
TestMixedGroupMachine.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=40
)
