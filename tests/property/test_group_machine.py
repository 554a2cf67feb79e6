"""Classic members join, leave and crash in any order; the coordinator is lost now and then."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.config.group import GroupConfig
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata, Synced
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.records import metadata_of
from penstock.coordinator.result import PendingReply
from penstock.errors import ErrorCode, KafkaError
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog, coordinator

CONFIG = GroupConfig(group_max_size=4)
PARTITIONS = range(6)
NAMES = st.integers(0, 5)


@dataclass
class Consumer:
    """A client's own view, which may be outdated."""

    id: str = ""
    instance: str | None = None
    generation: int = -1
    leads: bool = False
    members: tuple[str, ...] = ()
    join: PendingReply[Joined] | None = None
    sync: PendingReply[Synced] | None = None
    stale: list[tuple[str, int]] = field(default_factory=list)
    """Its earlier member ids and generations."""

    def forget(self) -> None:
        if self.generation >= 0:
            self.stale.append((self.id, self.generation))
        self.id, self.generation, self.leads = "", -1, False
        self.join = self.sync = None


class GroupMachine(RuleBasedStateMachine):
    """Each partition has one owner in a generation; members of other generations are fenced;
    offsets are those of the last accepted commit; and the log holds all of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop, self.log = ManualLoop(), MemoryLog()
        self.clock = LoopClock(self.loop)
        self.groups = coordinator(self.log, self.loop, self.clock, CONFIG)
        self.consumers = [Consumer(instance=f"i{n}" if n < 2 else None) for n in range(6)]
        self.owners: dict[int, dict[int, str]] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.serial = 0

    @rule(
        number=NAMES,
        protocols=st.sampled_from(["range", "sticky,range", "range,sticky"]),
        rebalance_timeout_ms=st.sampled_from([5_000, 5_000, 1, 0, -1]),
    )
    def join(self, number: int, protocols: str, rebalance_timeout_ms: int) -> None:
        consumer = self.consumers[number]
        self.serial += 1
        consumer.sync = None
        consumer.join = self.groups.join(
            GROUP,
            GroupJoin(
                member_id=consumer.id,
                new_member_id=f"c{number}-{self.serial}",
                instance_id=consumer.instance,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=rebalance_timeout_ms,
                protocol_type="consumer",
                protocols=tuple(ProtocolMetadata(p, b"") for p in protocols.split(",")),
                needs_known_id=number == 5,
                may_skip_assignment=True,
            ),
        )
        self.deliver()

    @rule(number=NAMES)
    def sync(self, number: int) -> None:
        consumer = self.consumers[number]
        if consumer.generation < 0 or consumer.join is not None:
            return
        assignments = dict.fromkeys(consumer.members, b"")
        if consumer.leads:
            for partition in PARTITIONS:
                owner = consumer.members[partition % len(consumer.members)]
                assignments[owner] += bytes([partition])
        consumer.sync = self.groups.sync(
            GROUP,
            GroupSync(
                member_id=consumer.id,
                instance_id=consumer.instance,
                generation=consumer.generation,
                assignments=assignments,
            ),
        )
        self.deliver()

    @rule(number=NAMES)
    def beat(self, number: int) -> None:
        consumer = self.consumers[number]
        reply = self.groups.heartbeat(
            GROUP, consumer.id, consumer.generation, consumer.instance
        ).reply
        if isinstance(reply, KafkaError) and reply.code is not ErrorCode.REBALANCE_IN_PROGRESS:
            consumer.forget()

    @rule(number=NAMES)
    def leave(self, number: int) -> None:
        consumer = self.consumers[number]
        self.groups.leave(GROUP, (LeavingMember(consumer.id, consumer.instance),))
        consumer.forget()
        self.deliver()

    @rule(number=NAMES)
    def die(self, number: int) -> None:
        """Its process crashes and forgets its state; the coordinator does not notice."""
        self.consumers[number].forget()

    @rule(number=NAMES, partition=st.sampled_from(PARTITIONS), offset=st.integers(0, 99))
    def commit(self, number: int, partition: int, offset: int) -> None:
        consumer = self.consumers[number]
        self._commit(consumer.id, consumer.generation, partition, offset)

    @rule(number=NAMES, partition=st.sampled_from(PARTITIONS), data=st.data())
    def a_zombie_commits(self, number: int, partition: int, data: st.DataObject) -> None:
        stale = self.consumers[number].stale
        if not stale:
            return
        member_id, generation = data.draw(st.sampled_from(stale))
        group = self.groups.shards()[0].classic_groups.get(GROUP)
        is_present = (
            group is not None and generation == group.generation and member_id in group.members
        )
        accepted = self._commit(member_id, generation, partition, 77)
        assert not accepted or is_present

    def _commit(self, member_id: str, generation: int, partition: int, offset: int) -> bool:
        topic_partition = TopicPartition("t", partition)
        pending = self.groups.commit(
            GROUP,
            Committer(generation=generation, member_id=member_id),
            ((topic_partition, CommittedOffset(offset)),),
        )
        accepted = pending.reply == (None,)
        if accepted:
            group = self.groups.shards()[0].classic_groups[GROUP]
            assert generation == group.generation or (generation < 0 and not group.members)
            self.committed[topic_partition] = offset
        return accepted

    @rule(milliseconds=st.sampled_from([100, 1000, 4000, 11_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.loop.advance(milliseconds / 1000)
        self.deliver()

    @rule()
    def the_coordinator_moves(self) -> None:
        self.groups.runtime.resign(0)
        self.deliver()
        self.groups = coordinator(self.log, self.loop, self.clock, CONFIG)
        self.loop.advance()

    @rule()
    def the_log_refuses(self) -> None:
        self.log.refusal = CoordinatorNotAvailable("too few replicas")

    @precondition(lambda self: self.log.refusal is not None)
    @rule()
    def the_log_accepts(self) -> None:
        self.log.refusal = None

    def deliver(self) -> None:
        for consumer in self.consumers:
            self._deliver_join(consumer)
            self._deliver_sync(consumer)

    def _deliver_join(self, consumer: Consumer) -> None:
        if consumer.join is None or consumer.join.reply is None:
            return
        reply, consumer.join = consumer.join.reply, None
        if isinstance(reply, KafkaError):
            consumer.forget()
            consumer.id = getattr(reply, "member_id", "")
            return
        if consumer.generation not in {-1, reply.generation}:
            consumer.stale.append((consumer.id, consumer.generation))
        consumer.id, consumer.generation = reply.member_id, reply.generation
        consumer.leads = bool(reply.members) and not reply.skip_assignment
        consumer.members = tuple(each.id for each in reply.members)

    def _deliver_sync(self, consumer: Consumer) -> None:
        if consumer.sync is None or consumer.sync.reply is None:
            return
        reply, consumer.sync = consumer.sync.reply, None
        if isinstance(reply, KafkaError):
            if reply.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                consumer.forget()
            return
        owners = self.owners.setdefault(consumer.generation, {})
        for partition in reply.assignment:
            who = consumer.instance or consumer.id
            assert owners.setdefault(partition, who) == who

    @invariant()
    def offsets_are_those_of_accepted_commits(self) -> None:
        found = self.groups.shards()[0].offsets.get(GROUP, {})
        assert {
            topic_partition: each.offset for topic_partition, each in found.items()
        } == self.committed

    @invariant()
    def every_wait_has_a_deadline(self) -> None:
        """Whatever the group's state, some deadline ends it."""
        group = self.groups.shards()[0].classic_groups.get(GROUP)
        if group is None:
            return
        # An absent static member stays and does not count towards the limit, as in Kafka.
        dynamic = sum(each.instance_id is None for each in group.members.values())
        assert dynamic <= 4 or group.state is ClassicGroupState.PREPARING_REBALANCE
        if group.members:
            assert group.next_deadline_ms() is not None
        if self.log.refusal is None:
            due = self.groups.shards()[0].next_deadline_ms()
            assert due is not None

    @invariant()
    def the_log_holds_the_whole_state(self) -> None:
        """A coordinator that loads the log has the same state, except pending replies."""
        here = self.groups.shards()[0]
        loop = ManualLoop()
        there = coordinator(self.log, loop, LoopClock(loop), CONFIG)
        loop.advance()
        other = there.shards()[0]
        assert other.offsets == here.offsets
        group, copy = here.classic_groups.get(GROUP), other.classic_groups.get(GROUP)
        assert (group is None) == (copy is None)
        if (
            group is not None
            and copy is not None
            and group.state in {ClassicGroupState.STABLE, ClassicGroupState.EMPTY}
        ):
            assert metadata_of(copy) == metadata_of(group)


GroupMachine.TestCase.settings = settings(
    max_examples=settings().max_examples * 2, stateful_step_count=40
)
test_a_group_in_any_order = GroupMachine.TestCase
