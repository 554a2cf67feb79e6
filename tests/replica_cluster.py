"""Three replicas of a partition, their controller and what is on its way between them, by hand.

No network, no clock, no thread: a test says which message arrives when, which broker dies, and
what its disk forgets. Leaders, followers and logs are the real ones over files that can crash.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import read_header
from penstock.replication import fencing
from penstock.replication.environment import Environment
from penstock.replication.follower import (
    FollowerLogs,
    NextStep,
    move_into_leader_range,
    next_fetch,
    process_partition_data,
)
from penstock.replication.isr import FollowerFetch
from penstock.replication.partition import Partition, StaleState
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import Accepted, IsrProposal, Rejected, Settlement
from penstock.replication.truncation import TruncationRule, truncation_by_epoch
from penstock.testing.files import Choice, lose_everything
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig, batch_of
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

LAG_MAX_MS = 1_000
NOBODY = -1


def keep_everything(_kind: str, count: int) -> int:
    """A process that dies takes no page cache along."""
    return count


@dataclass(frozen=True)
class State:
    """The partition as the controller wrote it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


@dataclass
class Node:
    """A broker with its disk; `epoch` is that of its registration."""

    id: int
    rig: LogRig
    epoch: int
    partition: Partition
    logs: FollowerLogs
    alive: bool = True
    inbox: deque[State] = field(default_factory=deque)
    on_its_way: tuple[FetchPartition, PartitionData] | None = None

    @property
    def values(self) -> dict[int, bytes]:
        return dict(self.rig.read_all())

    @property
    def bytes_committed(self) -> bytes:
        log = self.partition.log
        found, offset = b"", log.log_start_offset
        while part := log.read(offset, 1 << 20, up_to=log.high_watermark):
            data = part.read()
            found += data
            while data:
                header = read_header(data)
                offset, data = header.next_offset, data[header.size_bytes :]
        return found


@dataclass(frozen=True)
class Sent:
    """A batch whose producer waits for acks=all."""

    node: int
    life: int
    tenure: int
    offset: int
    value: bytes


class WatchedLogs(FollowerLogs):
    """What is committed is never cut: whoever may lead has it, whoever follows finds it there."""

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        log = self._store.logs[topic_partition]
        assert offset >= min(log.high_watermark, log.end_offset), (
            f"cut at {offset}, below the high watermark {log.high_watermark}"
        )
        super().truncate(topic_partition, offset)


class ReplicaCluster:
    def __init__(
        self, brokers: int = 3, min_isr: int = 1, rule: TruncationRule = truncation_by_epoch
    ) -> None:
        self.config = TopicConfig(
            min_insync_replicas=min_isr,
            segment_bytes=600,
            index_interval_bytes=100,
            segment_index_bytes=120,  # made in full at once, in memory here
        )
        self.rule = rule
        self.now_ms = 0
        self.fetch_bytes = 1  # one batch at a time
        self.replicas = tuple(range(brokers))
        self.lost_cache: set[int] = set()
        """Members whose disk may have forgotten something; not to be elected (Safety)."""
        self._epochs = 0
        self.nodes = [self._node(each, LogRig(self.config)) for each in self.replicas]
        self.state = State(NOBODY, -1, self.replicas, -1)
        self.proposals: deque[tuple[Node, int, IsrProposal]] = deque()
        self.settlements: deque[tuple[Node, int, IsrProposal, Settlement]] = deque()
        self.sent: list[Sent] = []
        self.acked: dict[int, bytes] = {}
        self._elect()

    def _node(self, number: int, rig: LogRig) -> Node:
        self._epochs += 1
        epoch = self._epochs

        def propose(proposal: IsrProposal) -> None:
            self.proposals.append((node, epoch, proposal))

        environment = Environment(
            monotonic_ms=lambda: self.now_ms,
            lag_time_max_ms=lambda: LAG_MAX_MS,
            is_eligible=lambda broker, seen: (
                self.nodes[broker].alive and self.nodes[broker].epoch == seen
            ),
            propose=propose,
        )
        partitions = Partitions(BrokerId(number), rig.store, environment)
        partition = partitions.create(*PARTITION, TOPIC_ID, 0)
        logs = WatchedLogs(rig.store, lambda _log, _offset: None)
        node = Node(number, rig, epoch, partition, logs)
        return node

    # Producers and followers.

    def produce(self, number: int, value: bytes) -> bool:
        """Append with acks=all at a broker that takes itself for the leader."""
        node = self.nodes[number]
        if not node.alive or not node.partition.leads:
            return False
        batch = batch_of(value)
        try:
            appended = node.partition.append(batch, read_header(batch), -1, self.now_ms)
        except KafkaError:
            return False
        tenure = node.partition.tenure
        self.sent.append(Sent(number, node.epoch, tenure, appended.last_offset, value))
        self.hear_acks()
        return True

    def hear_acks(self) -> None:
        """Acknowledge what is committed, as `broker/handlers/produce.py` does."""
        waiting = []
        for each in self.sent:
            node = self.nodes[each.node]
            partition = node.partition
            gone = not node.alive or node.epoch != each.life
            if gone or not partition.leads or partition.tenure != each.tenure:
                continue
            if partition.log.high_watermark <= each.offset:
                waiting.append(each)
            elif partition.has_enough_replicas():
                assert self.acked.setdefault(each.offset, each.value) == each.value
        self.sent = waiting

    def ask(self, number: int) -> None:
        """A follower's fetch reaches whom it takes for the leader; the answer sets out."""
        node = self.nodes[number]
        leader = node.partition.leader
        if not node.alive or node.partition.leads or leader == NOBODY:
            return
        if self.nodes[leader].alive:
            asked = next_fetch(node.partition, self.fetch_bytes)
            node.on_its_way = (asked, self._answer(self.nodes[leader].partition, node, asked))
            self.hear_acks()

    def _answer(self, partition: Partition, node: Node, asked: FetchPartition) -> PartitionData:
        """As `broker/handlers/fetch.py` does."""
        try:
            fencing.check_leader(partition, asked.current_leader_epoch)
            fencing.check_follower(partition, node.id, asked.current_leader_epoch, node.epoch)
            parted = fencing.diverging_epoch(
                partition, asked.last_fetched_epoch, asked.fetch_offset
            )
            if parted is not None:
                return PartitionData(
                    diverging_epoch=EpochEndOffset(epoch=parted.epoch, end_offset=parted.end_offset)
                )
            log = partition.log
            found = log.read(asked.fetch_offset, asked.partition_max_bytes, up_to=log.end_offset)
            partition.fetched(
                FollowerFetch(node.id, asked.fetch_offset, asked.log_start_offset, node.epoch)
            )
            return PartitionData(
                high_watermark=log.high_watermark,
                log_start_offset=log.log_start_offset,
                records=b"" if found is None else found.read(),
            )
        except KafkaError as error:
            return PartitionData(error_code=error.code)

    def answer(self, number: int) -> None:
        """The answer to a follower's fetch arrives."""
        node = self.nodes[number]
        if not node.alive or node.on_its_way is None:
            return
        (asked, data), node.on_its_way = node.on_its_way, None
        then = process_partition_data(
            node.partition, asked, data, node.logs, self.now_ms, self.rule
        )
        if then is NextStep.FIND_RANGE:
            leader = self.nodes[node.partition.leader]
            if leader.alive and leader.partition.leads:
                log = leader.partition.log
                move_into_leader_range(
                    node.partition, log.log_start_offset, log.end_offset, node.logs, self.now_ms
                )

    def fetch(self, number: int) -> None:
        self.ask(number)
        self.answer(number)

    # The controller.

    def _write(self, state: State) -> None:
        self.state = state
        for node in self.nodes:
            if node.alive:
                node.inbox.append(state)

    def _elect(self) -> None:
        """The first live replica of the in-sync set leads; the dead leave it, but for the last."""
        alive = {each.id for each in self.nodes if each.alive}
        old = self.state
        can_lead = [each for each in old.isr if each in alive - self.lost_cache]
        in_order = [each for each in self.replicas if each in can_lead]
        leader = in_order[0] if in_order else NOBODY
        isr = old.isr
        if leader != NOBODY:
            isr = tuple(e for e in old.isr if e in alive and e not in self.lost_cache)
        if (leader, isr) != (old.leader, old.isr):
            self._write(State(leader, old.leader_epoch + 1, isr, old.partition_epoch + 1))
        self.lost_cache &= set(self.state.isr)

    def notice(self) -> None:
        """The controller sees who is alive."""
        self._elect()

    def move_leader(self, number: int) -> bool:
        """A preferred election, if the broker may lead."""
        old = self.state
        if number not in old.isr or not self.nodes[number].alive or number in self.lost_cache:
            return False
        self._write(State(number, old.leader_epoch + 1, old.isr, old.partition_epoch + 1))
        return True

    def deliver_state(self, number: int) -> None:
        """LeaderAndIsr arrives."""
        node = self.nodes[number]
        if not node.alive or not node.inbox:
            return
        state, partition = node.inbox.popleft(), node.partition
        try:
            if state.leader == number:
                partition.lead(state.leader_epoch, state.isr, self.replicas, state.partition_epoch)
            else:
                partition.follow(
                    state.leader, state.leader_epoch, self.replicas, state.partition_epoch
                )
        except StaleState:
            pass
        self.hear_acks()

    def decide_proposal(self) -> None:
        """AlterPartition arrives at the controller."""
        if not self.proposals:
            return
        node, life, proposal = self.proposals.popleft()
        self.settlements.append((node, life, proposal, self._settlement(node, proposal)))

    def _settlement(self, node: Node, proposal: IsrProposal) -> Settlement:
        state = self.state
        if state.leader != node.id or proposal.leader_epoch != state.leader_epoch:
            return Rejected(ErrorCode.FENCED_LEADER_EPOCH)
        isr = tuple(member.broker for member in proposal.isr)
        if set(isr) == set(state.isr):  # before the partition epoch: it may be asked twice
            return Accepted(state.leader_epoch, state.partition_epoch, state.isr)
        if proposal.partition_epoch != state.partition_epoch:
            return Rejected(ErrorCode.INVALID_UPDATE_VERSION)
        for member in proposal.isr:
            known = self.nodes[member.broker]
            if not known.alive or member.broker_epoch not in {-1, known.epoch}:
                return Rejected(ErrorCode.INELIGIBLE_REPLICA)
        self.state = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
        self.lost_cache &= set(isr)
        return Accepted(state.leader_epoch, self.state.partition_epoch, isr)

    def deliver_settlement(self, *, lost: bool = False) -> None:
        """AlterPartition's answer arrives, or its connection breaks and nobody knows."""
        if not self.settlements:
            return
        node, life, proposal, settlement = self.settlements.popleft()
        if node.alive and node.epoch == life:
            if lost:
                settlement = Rejected(ErrorCode.NETWORK_EXCEPTION)
            node.partition.settle(proposal, settlement)
            self.hear_acks()

    # Faults.

    def may_lose_power(self, number: int) -> bool:
        """Someone else in sync must still have everything: the promise is that of replication."""
        return any(e not in self.lost_cache for e in self.state.isr if e != number)

    def crash(self, number: int, *, choose: Choice = keep_everything) -> None:
        node = self.nodes[number]
        node.alive, node.on_its_way = False, None
        node.inbox.clear()
        if choose is not keep_everything and number in self.state.isr:
            self.lost_cache.add(number)
        node.rig.crash(choose)

    def lose_power(self, number: int) -> None:
        self.crash(number, choose=lose_everything)

    def restart(self, number: int) -> None:
        """It registers anew: the controller takes that for a death and a birth."""
        self._elect()
        rig = self.nodes[number].rig
        if PARTITION not in rig.store.logs:
            rig.store.create(PARTITION, TOPIC_ID, 0)
        self.nodes[number] = node = self._node(number, rig)
        before = self.state
        self._elect()
        if self.state is before:
            node.inbox.append(before)

    # The end.

    def shrink(self, number: int) -> None:
        node = self.nodes[number]
        if node.alive:
            node.partition.shrink()

    def heal(self) -> None:
        """Everyone comes back and every message arrives, until all replicas are the same."""
        for node in list(self.nodes):
            if not node.alive:
                self.restart(node.id)
        self._elect()
        for _ in range(400):
            for number in self.replicas:
                self.deliver_state(number)
                self.fetch(number)
            self.decide_proposal()
            self.deliver_settlement()
            if self.is_healed():
                return
            self.now_ms += 1
        raise AssertionError(f"not healed: {self.state}, {[n.values for n in self.nodes]}")

    def is_healed(self) -> bool:
        leader = self.nodes[self.state.leader].partition.log
        return set(self.state.isr) == set(self.replicas) and all(
            node.partition.log.end_offset == leader.end_offset
            and node.partition.log.high_watermark == leader.end_offset
            and not node.inbox
            for node in self.nodes
        )
