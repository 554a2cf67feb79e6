"""Three replicas of a partition, their controller and the messages between them, moved by hand.

No network, no clock, no thread: a test says which message arrives when, which broker dies, and what
its disk loses. Leaders, followers and logs are the real ones, on files that can crash.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import read_header
from penstock.replication import read_fencing
from penstock.replication.environment import Environment
from penstock.replication.errors import StaleState
from penstock.replication.follower import (
    FollowerLogs,
    NextStep,
    move_into_leader_range,
    next_fetch,
    process_partition_data,
)
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch, propose_shrink, settle
from penstock.replication.partition import Partition
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
    """The page cache survives when only the process dies."""
    return count


def flip_last_offset(rig: LogRig, bit: int) -> None:
    """Flip a bit of the last batch's base offset, which no CRC covers."""
    found = rig.log.segments.active.find(rig.log.end_offset - 1)
    if found is not None:
        rig.fake.flip_bit(rig.log.segments.active.path(), (found[0] + 7 - bit // 8) * 8 + bit % 8)


@dataclass(frozen=True)
class State:
    """The partition's state as written by the controller."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


@dataclass
class Node:
    """A broker with its disk; `epoch` is its broker epoch."""

    id: int
    rig: LogRig
    epoch: int
    partition: Partition
    logs: FollowerLogs
    alive: bool = True
    inbox: deque[State] = field(default_factory=deque)
    in_flight: tuple[FetchPartition, PartitionData] | None = None

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
    epoch: int
    tenure: int
    offset: int
    value: bytes


class WatchedLogs(FollowerLogs):
    """Asserts that committed records are never truncated: every eligible leader has them."""

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        log = self._store.logs[topic_partition]
        assert offset >= min(log.high_watermark, log.end_offset), (
            f"truncated at {offset}, below the high watermark {log.high_watermark}"
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
            segment_index_bytes=120,  # preallocated, here in memory
        )
        self.rule = rule
        self.now_ms = 0
        self.fetch_bytes = 1  # one batch at a time
        self.replicas = tuple(range(brokers))
        self.unclean_shutdowns: set[int] = set()
        """Members whose disk may have lost records; not eligible as leaders."""
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

    def produce(self, number: int, *values: bytes) -> bool:
        """Append a batch with acks=all on a broker that believes it leads."""
        node = self.nodes[number]
        if not node.alive or not node.partition.leads:
            return False
        batch = batch_of(*values)
        try:
            appended = node.partition.append(batch, read_header(batch), -1, self.now_ms)
        except KafkaError:
            return False
        tenure = node.partition.tenure
        self.sent += [
            Sent(number, node.epoch, tenure, offset, value)
            for offset, value in enumerate(values, appended.first_offset)
        ]
        self.collect_acks()
        return True

    def collect_acks(self) -> None:
        """Acknowledge what is committed, as `broker/handlers/produce.py` does."""
        waiting = []
        for each in self.sent:
            node = self.nodes[each.node]
            partition = node.partition
            gone = not node.alive or node.epoch != each.epoch
            if gone or not partition.leads or partition.tenure != each.tenure:
                continue
            if partition.log.high_watermark <= each.offset:
                waiting.append(each)
            elif partition.has_enough_replicas():
                assert self.acked.setdefault(each.offset, each.value) == each.value
        self.sent = waiting

    def send_fetch(self, number: int) -> None:
        """A follower's fetch reaches its supposed leader; the response is in flight."""
        node = self.nodes[number]
        leader = node.partition.leader
        if not node.alive or node.partition.leads or leader == NOBODY:
            return
        if self.nodes[leader].alive:
            request = next_fetch(node.partition, self.fetch_bytes)
            node.in_flight = (request, self._answer(self.nodes[leader].partition, node, request))
            self.collect_acks()

    def _answer(self, partition: Partition, node: Node, request: FetchPartition) -> PartitionData:
        """Answers as `broker/handlers/fetch.py` does."""
        try:
            partition.check_leader(request.current_leader_epoch)
            read_fencing.check_follower(
                partition, node.id, request.current_leader_epoch, node.epoch
            )
            diverging = read_fencing.diverging_epoch(
                partition, request.last_fetched_epoch, request.fetch_offset
            )
            if diverging is not None:
                return PartitionData(
                    diverging_epoch=EpochEndOffset(
                        epoch=diverging.epoch, end_offset=diverging.end_offset
                    )
                )
            log = partition.log
            found = log.read(
                request.fetch_offset, request.partition_max_bytes, up_to=log.end_offset
            )
            note_fetch(
                partition,
                FollowerFetch(node.id, request.fetch_offset, request.log_start_offset, node.epoch),
            )
            return PartitionData(
                high_watermark=log.high_watermark,
                log_start_offset=log.log_start_offset,
                records=b"" if found is None else found.read(),
            )
        except KafkaError as error:
            return PartitionData(error_code=error.code)

    def receive_fetch(self, number: int) -> None:
        """The response to a follower's fetch arrives."""
        node = self.nodes[number]
        if not node.alive or node.in_flight is None:
            return
        (request, data), node.in_flight = node.in_flight, None
        step = process_partition_data(
            node.partition, request, data, node.logs, self.now_ms, self.rule
        )
        if step is NextStep.FIND_RANGE:
            leader = self.nodes[node.partition.leader]
            if leader.alive and leader.partition.leads:
                log = leader.partition.log
                move_into_leader_range(
                    node.partition, log.log_start_offset, log.end_offset, node.logs, self.now_ms
                )

    def fetch(self, number: int) -> None:
        self.send_fetch(number)
        self.receive_fetch(number)

    # The controller.

    def _write(self, state: State) -> None:
        self.state = state
        for node in self.nodes:
            if node.alive:
                node.inbox.append(state)

    def _elect(self) -> None:
        """Elect the first live in-sync replica; dead ones leave the set, except the last."""
        alive = {each.id for each in self.nodes if each.alive}
        old = self.state
        can_lead = [each for each in old.isr if each in alive - self.unclean_shutdowns]
        in_order = [each for each in self.replicas if each in can_lead]
        leader = in_order[0] if in_order else NOBODY
        isr = old.isr
        if leader != NOBODY:
            isr = tuple(e for e in old.isr if e in alive and e not in self.unclean_shutdowns)
        if (leader, isr) != (old.leader, old.isr):
            self._write(State(leader, old.leader_epoch + 1, isr, old.partition_epoch + 1))
        self.unclean_shutdowns &= set(self.state.isr)

    def notice(self) -> None:
        """The controller notices which brokers are alive."""
        self._elect()

    def move_leader(self, number: int) -> bool:
        """A preferred election, if the broker may lead."""
        old = self.state
        if (
            number not in old.isr
            or not self.nodes[number].alive
            or number in self.unclean_shutdowns
        ):
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
        self.collect_acks()

    def decide_proposal(self) -> None:
        """AlterPartition arrives at the controller."""
        if not self.proposals:
            return
        node, epoch, proposal = self.proposals.popleft()
        self.settlements.append((node, epoch, proposal, self._settlement(node, proposal)))

    def _settlement(self, node: Node, proposal: IsrProposal) -> Settlement:
        state = self.state
        if state.leader != node.id or proposal.leader_epoch != state.leader_epoch:
            return Rejected(ErrorCode.FENCED_LEADER_EPOCH)
        isr = tuple(member.broker for member in proposal.isr)
        if set(isr) == set(state.isr):  # checked before the partition epoch: the leader may retry
            return Accepted(state.leader_epoch, state.partition_epoch, state.isr)
        if proposal.partition_epoch != state.partition_epoch:
            return Rejected(ErrorCode.INVALID_UPDATE_VERSION)
        for member in proposal.isr:
            known = self.nodes[member.broker]
            if not known.alive or member.broker_epoch not in {-1, known.epoch}:
                return Rejected(ErrorCode.INELIGIBLE_REPLICA)
        self.state = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
        self.unclean_shutdowns &= set(isr)
        return Accepted(state.leader_epoch, self.state.partition_epoch, isr)

    def deliver_settlement(self, *, lost: bool = False) -> None:
        """The response to AlterPartition arrives, or is lost with its connection."""
        if not self.settlements:
            return
        node, epoch, proposal, settlement = self.settlements.popleft()
        if node.alive and node.epoch == epoch:
            if lost:
                settlement = Rejected(ErrorCode.NETWORK_EXCEPTION)
            settle(node.partition, proposal, settlement)
            self.collect_acks()

    # Faults.

    def may_lose_power(self, number: int) -> bool:
        """Whether another in-sync replica still has everything, as replication requires."""
        return any(e not in self.unclean_shutdowns for e in self.state.isr if e != number)

    def crash(
        self,
        number: int,
        *,
        choose: Choice = keep_everything,
        damage: Callable[[], None] | None = None,
    ) -> None:
        node = self.nodes[number]
        node.alive, node.in_flight = False, None
        node.inbox.clear()
        if (choose is not keep_everything or damage is not None) and number in self.state.isr:
            self.unclean_shutdowns.add(number)
        node.rig.crash(choose, damage)

    def lose_power(self, number: int) -> None:
        self.crash(number, choose=lose_everything)

    def flip_offset(self, number: int, bit: int) -> None:
        """The broker dies, and a bit of its last batch's offset flips on the disk."""
        self.crash(number, damage=lambda: flip_last_offset(self.nodes[number].rig, bit))

    def restart(self, number: int) -> None:
        """Register again, which the controller treats as a death and a new broker."""
        self._elect()
        rig = self.nodes[number].rig
        if PARTITION not in rig.store.logs:
            rig.store.create(PARTITION, TOPIC_ID, 0)
        self.nodes[number] = node = self._node(number, rig)
        before = self.state
        self._elect()
        if self.state is before:
            node.inbox.append(before)

    # Healing.

    def shrink(self, number: int) -> None:
        node = self.nodes[number]
        if node.alive:
            propose_shrink(node.partition)

    def heal(self) -> None:
        """Restart all brokers and deliver all messages, until all replicas are equal."""
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
