"""A partition's replica on this broker: its role, the in-sync set, and the high watermark."""

from penstock.config.topic import TopicConfig
from penstock.log.partition_log import Appended, PartitionLog
from penstock.record.batch import BatchHeader
from penstock.record.rules import BatchRules
from penstock.replication.environment import ALONE, Environment
from penstock.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    StaleState,
    UnknownLeaderEpoch,
)
from penstock.replication.isr import (
    FollowerState,
    Isr,
    at_election,
    committed_end,
    effective_min_isr,
    holds_back,
)
from penstock.replication.proposal import IsrProposal
from penstock.types import BrokerId, TopicPartition, Uuid


class Partition:
    """The replica on this broker and, if it leads, the state of the others.

    The high watermark is the smallest end offset among the in-sync replicas: with this broker
    alone in sync, records are committed as they are appended. Belongs to the event loop.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        environment: Environment = ALONE,
    ) -> None:
        self.broker_id, self.environment = broker_id, environment
        self.topic_partition, self.topic_id, self.log = topic_partition, topic_id, log
        self.leader: int = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        """Version of the partition's state on this broker; proposals build on it."""
        self.in_sync = Isr(())
        self.replicas: tuple[int, ...] = (broker_id,)
        self.followers: dict[int, FollowerState] = {}
        """On a leader: the other replicas."""
        self.leads = False
        self.tenure = 0
        """Counts how often this broker has ceased to lead. Records appended in one tenure may have
        been truncated before the next; then other records are at their offsets, and the high
        watermark says nothing about the former. See `is_in_tenure`."""
        self.epoch_start_offset = -1
        """On a leader: where its epoch begins."""
        self.leader_high_watermark = -1
        """On a follower: the leader's high watermark in the last response; -1 before the first."""
        self.proposal: IsrProposal | None = None
        """The pending proposal to change the in-sync set."""
        self.records_in = self.bytes_in = self.bytes_out = 0
        self.replication_bytes_out = 0
        """Fetched by followers; `bytes_out` counts consumers."""
        self.configure(log.config)

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas that the controller has confirmed."""
        return self.in_sync.committed

    def configure(self, config: TopicConfig) -> None:
        """Apply new topic settings, from the next request on."""
        self.log.config = config
        self.rules = BatchRules.of(config)
        self.min_insync_replicas = config.min_insync_replicas
        self._update_min_isr()

    def _update_min_isr(self) -> None:
        self.min_isr = effective_min_isr(self.min_insync_replicas, len(self.replicas))
        """How many in-sync replicas acks=all needs."""

    def replace_log(self, log: PartitionLog) -> None:
        """Continue with a copy of the log.

        The copy lacks an epoch without records. Settings may have changed since it was created:
        those of the old log apply.
        """
        config, self.log = self.log.config, log
        if self.leads:
            log.assign_epoch(self.leader_epoch, log.end_offset)
        self.configure(config)

    # State changes by the controller.

    def lead(
        self,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...] | None = None,
        partition_epoch: int = -1,
    ) -> None:
        """Become the leader in this epoch, or take another replica or in-sync set."""
        self._check_epochs(leader_epoch, partition_epoch)
        self.replicas = isr if replicas is None else replicas
        self._update_min_isr()
        is_new = not self.leads
        if leader_epoch > self.leader_epoch or is_new:
            self._begin_epoch(leader_epoch, isr, is_new=is_new)
        for gone in self.followers.keys() - set(self.replicas):
            del self.followers[gone]
        for replica in self.replicas:
            if replica != self.broker_id and replica not in self.followers:
                self.followers[replica] = self._follower_at_election(None, replica in isr)
        known = (self.leader_epoch, self.partition_epoch) == (leader_epoch, partition_epoch)
        if is_new or not known or partition_epoch < 0:
            # A repeated LeaderAndIsr must not end a proposal: the controller may have written it.
            self.in_sync, self.proposal = Isr(isr), None
        self.leader, self.leader_epoch = self.broker_id, leader_epoch
        self.partition_epoch = partition_epoch
        self.leads = True
        self.advance()

    def _begin_epoch(self, leader_epoch: int, isr: tuple[int, ...], *, is_new: bool) -> None:
        self.epoch_start_offset, self.log.unverified_gaps = self.log.end_offset, []
        self.log.assign_epoch(leader_epoch, self.epoch_start_offset)
        for replica in self.replicas:
            if replica != self.broker_id:
                known = None if is_new else self.followers.get(replica)
                self.followers[replica] = self._follower_at_election(known, replica in isr)

    def _follower_at_election(self, known: FollowerState | None, in_sync: bool) -> FollowerState:  # noqa: FBT001
        now_ms = self.environment.monotonic_ms()
        return at_election(known, self.log.end_offset, now_ms, in_sync=in_sync)

    def follow(
        self,
        leader: int,
        leader_epoch: int,
        replicas: tuple[int, ...],
        partition_epoch: int = -1,
    ) -> bool:
        """Become a follower; returns whether the leader or its epoch has changed."""
        self._check_epochs(leader_epoch, partition_epoch)
        is_new = leader_epoch > self.leader_epoch or self.leads or leader != self.leader
        if self.leads:
            self.tenure += 1
        self.leads = False
        self.leader, self.leader_epoch = leader, leader_epoch
        self.partition_epoch, self.replicas = partition_epoch, replicas
        self._update_min_isr()
        self.in_sync, self.proposal = Isr(()), None
        self.followers.clear()
        self.epoch_start_offset = -1
        if is_new:
            self.leader_high_watermark = -1
        self.environment.changed(self.topic_partition)
        return is_new

    def retire(self) -> None:
        """Stop leading and following: the log is deleted or set aside.

        Wakes waiting requests, since nothing will ever be committed here.
        """
        if self.leads:
            self.tenure += 1
        self.leads, self.leader = False, -1
        self.in_sync, self.proposal = Isr(()), None
        self.followers.clear()
        self.environment.changed(self.topic_partition)

    def update_from_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take the leader's high watermark and log start offset from a fetch response.

        The high watermark never moves back: a new leader may not know yet what was committed.
        """
        log = self.log
        self.leader_high_watermark = high_watermark
        if high_watermark > log.high_watermark:
            before = log.high_watermark
            log.set_high_watermark(high_watermark)
            if log.high_watermark != before:
                self.environment.changed(self.topic_partition)
        log.maybe_increment_log_start(min(log_start_offset, log.high_watermark))

    def _check_epochs(self, leader_epoch: int, partition_epoch: int) -> None:
        if leader_epoch < self.leader_epoch or partition_epoch < self.partition_epoch:
            raise StaleState(
                f"{self.topic_partition} is at leader epoch {self.leader_epoch} and partition "
                f"epoch {self.partition_epoch}, not {leader_epoch} and {partition_epoch}"
            )

    # Requests of clients and followers. Reads are checked further by `read_fencing.py`.

    def check_leader(self, known_epoch: int = -1) -> None:
        """Raise unless this broker leads, in the epoch that the client knows (-1: unspecified)."""
        if not self.leads or known_epoch not in {-1, self.leader_epoch}:
            self.check_epoch(known_epoch)
            raise NotLeader(f"{self.topic_partition} is led by broker {self.leader}")

    def check_epoch(self, known_epoch: int) -> None:
        """Raise if the client knows another leader epoch than this broker (-1: unspecified)."""
        if known_epoch not in {-1, self.leader_epoch}:
            if known_epoch < self.leader_epoch:
                raise FencedLeaderEpoch(f"epoch {known_epoch} is before {self.leader_epoch}")
            raise UnknownLeaderEpoch(f"epoch {known_epoch} is after {self.leader_epoch}")

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
    ) -> Appended:
        """Append a validated batch as the leader, wake the requests that wait for it, and request
        a flush if one is due. The batches of coordinators (not `from_client`) have no sequences.
        """
        self.check_leader()
        if acks == -1 and len(self.in_sync.committed) < self.min_isr:
            raise NotEnoughReplicas(
                f"{self.topic_partition} needs {self.min_isr} replicas in sync, "
                f"and has {len(self.isr)}"
            )
        appended = self.log.append_as_leader(
            batch, header, self.leader_epoch, now_ms, from_client=from_client
        )
        self.records_in += header.record_count
        self.bytes_in += len(batch)
        self.advance()
        self.environment.changed(self.topic_partition)
        if appended.flush_due:
            self.environment.flush(self.log)
        return appended

    def advance(self) -> bool:
        """Move the high watermark to the smallest end offset of the replicas that count."""
        log = self.log
        end_offset = log.end_offset
        if not self.followers:
            return log.advance_high_watermark(end_offset)
        maximal, followers, high_watermark = (
            self.in_sync.maximal,
            self.followers,
            log.high_watermark,
        )
        for replica in maximal:  # most appends end here: the slowest follower has not fetched yet
            if replica in followers and followers[replica].end_offset <= high_watermark:
                return False
        environment = self.environment
        now_ms, lag_max_ms = environment.monotonic_ms(), environment.lag_time_max_ms()
        lag_max_messages = environment.lag_max_messages()
        committed = committed_end(
            end_offset,
            (
                state
                for replica, state in followers.items()
                if state.end_offset < end_offset
                and holds_back(
                    maximal,
                    replica,
                    state,
                    end_offset,
                    now_ms,
                    lag_max_ms,
                    lag_max_messages,
                    eligible=environment.is_eligible(replica, state.broker_epoch),
                )
            ),
            under_min_isr=len(self.in_sync.committed) < self.min_isr,
        )
        return committed is not None and log.advance_high_watermark(committed)

    @property
    def lag(self) -> int:
        """On a follower: how many committed records it lacks, as far as it knows."""
        return 0 if self.leads else max(0, self.leader_high_watermark - self.log.end_offset)

    def is_in_tenure(self, tenure: int) -> bool:
        """Whether this broker has led ever since `tenure` was read. If not, the records that it
        appended then may have been truncated, whatever the high watermark says.
        """
        return self.leads and tenure == self.tenure

    def has_enough_replicas(self) -> bool:
        """Whether records below the high watermark are as safe as acks=all promises."""
        return len(self.in_sync.maximal) >= self.min_isr
