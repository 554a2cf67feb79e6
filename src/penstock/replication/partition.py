"""One partition on this broker: who leads it, which replicas are in sync, what is committed."""

import logging
from collections.abc import Iterator

from penstock.config.topic import TopicConfig
from penstock.log.append import Appended, OffsetOutOfRange
from penstock.log.partition_log import PartitionLog
from penstock.record.batch import BatchHeader
from penstock.record.compression import Codec
from penstock.record.validate import BatchRules
from penstock.replication.environment import ALONE, Environment
from penstock.replication.isr import (
    FollowerFetch,
    FollowerState,
    Isr,
    IsrChange,
    Joining,
    Leaving,
    after_fetch,
    at_election,
    committed_end,
    effective_min_isr,
    holds_back,
    may_join,
    out_of_sync,
)
from penstock.replication.proposal import (
    NOT_DONE,
    OUTDATED,
    Accepted,
    InSyncReplica,
    IsrProposal,
    Settlement,
)
from penstock.replication.refusal import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    OffsetNotAvailable,
    StaleState,
    UnknownLeaderEpoch,
)
from penstock.replication.truncation import EpochEnd, diverging
from penstock.types import BrokerId, TopicPartition, Uuid

logger = logging.getLogger(__name__)


class Partition:
    """A replica on this broker and, where it leads, the state of the others.

    The high watermark is the smallest end offset among the in-sync replicas: with this broker
    alone in sync, whatever is appended is committed at once. Belongs to the event loop.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        environment: Environment = ALONE,
    ) -> None:
        self._broker_id, self._environment = broker_id, environment
        self.topic_partition, self.topic_id, self.log = topic_partition, topic_id, log
        self.leader: int = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        """The version of the partition's state that this broker knows; changes are proposed on
        top of it."""
        self.in_sync = Isr(())
        self.replicas: tuple[int, ...] = (broker_id,)
        self.followers: dict[int, FollowerState] = {}
        """Of a leader: the other replicas."""
        self.leads = False
        self.tenure = 0
        """Counts how often this broker has ceased to lead. What was appended in one tenure may
        have been cut off in the next."""
        self.epoch_start_offset = -1
        """Of a leader: where its epoch begins."""
        self.leader_high_watermark = -1
        """Of a follower: what its leader told last; -1 where it has told nothing."""
        self._proposal: IsrProposal | None = None
        self.records_in = self.bytes_in = self.bytes_out = 0
        self.replication_bytes_out = 0
        """What followers have fetched; `bytes_out` is what consumers have."""
        self.configure(log.config)

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas that the controller has confirmed."""
        return self.in_sync.committed

    def configure(self, config: TopicConfig) -> None:
        """Take new topic settings; they hold from the next request on."""
        self.log.config = config
        kept = config.compression_type == "producer"
        name = "none" if config.compression_type == "uncompressed" else config.compression_type
        self.rules = BatchRules(
            max_message_bytes=config.max_message_bytes,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            keys_required="compact" in config.cleanup_policy,
            codec=None if kept else Codec[name.upper()],
            codec_level=None if kept else config.codec_level(name),
        )
        self.min_insync_replicas = config.min_insync_replicas
        self._count_needed()

    def _count_needed(self) -> None:
        self.min_isr = effective_min_isr(self.min_insync_replicas, len(self.replicas))
        """How many replicas acks=all needs."""

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy of the log; an epoch in which nothing was written is not in it.

        Settings may have changed since the copy was begun: those of the log count.
        """
        config, self.log = self.log.config, log
        if self.leads:
            log.assign_epoch(self.leader_epoch, log.end_offset)
        self.configure(config)

    # What the controller says.

    def lead(
        self,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...] | None = None,
        partition_epoch: int = -1,
    ) -> None:
        """Become the leader in this epoch, or hear of other replicas or another in-sync set."""
        self._check_news(leader_epoch, partition_epoch)
        self.replicas = isr if replicas is None else replicas
        self._count_needed()
        is_new = not self.leads
        if leader_epoch > self.leader_epoch or is_new:
            self._begin_epoch(leader_epoch, isr, is_new=is_new)
        for gone in self.followers.keys() - set(self.replicas):
            del self.followers[gone]
        for replica in self.replicas:
            if replica != self._broker_id and replica not in self.followers:
                self.followers[replica] = self._follower_at_election(None, replica in isr)
        known = (self.leader_epoch, self.partition_epoch) == (leader_epoch, partition_epoch)
        if is_new or not known or partition_epoch < 0:
            # The same word twice must not end a proposal: it may be the cluster's by now.
            self.in_sync, self._proposal = Isr(isr), None
        self.leader, self.leader_epoch = self._broker_id, leader_epoch
        self.partition_epoch = partition_epoch
        self.leads = True
        self.advance()

    def _begin_epoch(self, leader_epoch: int, isr: tuple[int, ...], *, is_new: bool) -> None:
        self.epoch_start_offset = self.log.end_offset
        self.log.assign_epoch(leader_epoch, self.epoch_start_offset)
        for replica in self.replicas:
            if replica != self._broker_id:
                known = None if is_new else self.followers.get(replica)
                self.followers[replica] = self._follower_at_election(known, replica in isr)

    def _follower_at_election(self, known: FollowerState | None, in_sync: bool) -> FollowerState:  # noqa: FBT001
        now_ms = self._environment.monotonic_ms()
        return at_election(known, self.log.end_offset, now_ms, in_sync=in_sync)

    def follow(
        self,
        leader: int,
        leader_epoch: int,
        replicas: tuple[int, ...],
        partition_epoch: int = -1,
    ) -> bool:
        """Become a follower; says whether the leader or its epoch is another than before."""
        self._check_news(leader_epoch, partition_epoch)
        is_new = leader_epoch > self.leader_epoch or self.leads or leader != self.leader
        if self.leads:
            self.tenure += 1
        self.leads = False
        self.leader, self.leader_epoch = leader, leader_epoch
        self.partition_epoch, self.replicas = partition_epoch, replicas
        self._count_needed()
        self.in_sync, self._proposal = Isr(()), None
        self.followers.clear()
        self.epoch_start_offset = -1
        if is_new:
            self.leader_high_watermark = -1
        self._environment.changed(self.topic_partition)
        return is_new

    def retire(self) -> None:
        """Neither lead nor follow any more: the log is deleted or set aside.

        Requests that wait for it must hear that: nothing will ever be committed here.
        """
        if self.leads:
            self.tenure += 1
        self.leads, self.leader = False, -1
        self.in_sync, self._proposal = Isr(()), None
        self.followers.clear()
        self._environment.changed(self.topic_partition)

    def heard(self, high_watermark: int, log_start_offset: int) -> None:
        """A follower's leader told how far its log is committed, and where it begins.

        What was committed stays so: a new leader that does not know it yet takes nothing back.
        """
        log = self.log
        self.leader_high_watermark = high_watermark
        if high_watermark > log.high_watermark:
            before = log.high_watermark
            log.set_high_watermark(high_watermark)
            if log.high_watermark != before:
                self._environment.changed(self.topic_partition)
        log.maybe_increment_log_start(min(log_start_offset, log.high_watermark))

    def _check_news(self, leader_epoch: int, partition_epoch: int) -> None:
        if leader_epoch < self.leader_epoch or partition_epoch < self.partition_epoch:
            raise StaleState(
                f"{self.topic_partition} is at leader epoch {self.leader_epoch} and partition "
                f"epoch {self.partition_epoch}, not {leader_epoch} and {partition_epoch}"
            )

    # What clients and followers ask.

    def check_leader(self, known_epoch: int = -1) -> None:
        """Refuse unless this broker leads, and in the epoch that the client knows, if it tells."""
        if not self.leads or known_epoch not in {-1, self.leader_epoch}:
            self.check_epoch(known_epoch)
            raise NotLeader(f"{self.topic_partition} is led by broker {self.leader}")

    def check_epoch(self, known_epoch: int) -> None:
        """Refuse who knows another epoch than this broker; -1 does not tell."""
        if known_epoch not in {-1, self.leader_epoch}:
            if known_epoch < self.leader_epoch:
                raise FencedLeaderEpoch(f"epoch {known_epoch} is before {self.leader_epoch}")
            raise UnknownLeaderEpoch(f"epoch {known_epoch} is after {self.leader_epoch}")

    def check_readable(self, known_epoch: int) -> None:
        """Refuse who knows another epoch, and where this broker neither leads nor follows."""
        self.check_epoch(known_epoch)
        if self.leader_epoch < 0:
            raise NotLeader(f"{self.topic_partition} has no leader yet, as far as is known here")

    def check_follower(self, replica: int, known_epoch: int, broker_epoch: int) -> None:
        """Refuse a broker to which no replica is assigned; it may be about to be.

        And a request that a former life of the broker has left behind: what it had may be lost.
        """
        state = self.followers.get(replica)
        if state is None:
            told = f"broker {replica} has no replica of {self.topic_partition}"
            raise NotLeader(told) if known_epoch < 0 else UnknownLeaderEpoch(told)
        if 0 <= broker_epoch < state.broker_epoch:
            raise NotLeader(f"broker {replica} has been registered anew since {broker_epoch}")

    def check_latest_known(self, end: int) -> None:
        """Refuse to tell that the log ends at `end`, as long as the high watermark is that of a
        former epoch: more may be committed, and have been read (KIP-207).
        """
        if end < self.epoch_start_offset and self.log.high_watermark < self.epoch_start_offset:
            raise OffsetNotAvailable(
                f"{self.topic_partition} has committed up to {self.log.high_watermark}, "
                f"its epoch begins at {self.epoch_start_offset}"
            )

    def diverging(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Where a reader's log and this one part, if the reader tells its last epoch (KIP-595)."""
        if last_fetched_epoch < 0:
            return None
        log = self.log
        found = diverging(log.epochs, log.end_offset, last_fetched_epoch, fetch_offset)
        unknown = found is not None and found.epoch < 0
        if unknown or fetch_offset < log.log_start_offset:
            raise OffsetOutOfRange(fetch_offset, log.log_start_offset, log.end_offset)
        return found

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
    ) -> Appended:
        """Append a checked batch as the leader; coordinators' own have no sequences."""
        if acks == -1 and len(self.in_sync.committed) < self.min_isr:
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {len(self.isr)} replicas in sync, "
                f"{self.min_isr} are needed"
            )
        appended = self.log.append_as_leader(
            batch, header, self.leader_epoch, now_ms, from_client=from_client
        )
        self.records_in += header.record_count
        self.bytes_in += len(batch)
        self.advance()
        return appended

    def advance(self) -> bool:
        """Move the high watermark as far as every replica that counts has come."""
        log = self.log
        end_offset = log.end_offset
        if not self.followers:
            return log.advance_high_watermark(end_offset)
        maximal, followers, high_watermark = (
            self.in_sync.maximal,
            self.followers,
            log.high_watermark,
        )
        for replica in maximal:  # most appends end here: the slowest has not fetched yet
            if replica in followers and followers[replica].end_offset <= high_watermark:
                return False
        environment = self._environment
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

    def fetched(self, fetch: FollowerFetch) -> None:
        """A follower has shown how far it is: it may join, and more may be committed by that."""
        environment, log = self._environment, self.log
        before = self.followers[fetch.replica]
        state = after_fetch(before, fetch, log.end_offset, environment.monotonic_ms())
        self.followers[fetch.replica] = state
        if may_join(
            self.in_sync, fetch.replica, state, log.high_watermark, self.epoch_start_offset
        ) and environment.is_eligible(fetch.replica, state.broker_epoch):
            self._propose(Joining(fetch.replica))
        advanced = state.end_offset != before.end_offset and self.advance()
        if advanced or state.log_start_offset != before.log_start_offset:
            environment.changed(self.topic_partition)

    @property
    def lag(self) -> int:
        """Of a follower: how many committed records it does not have, as far as it knows."""
        return 0 if self.leads else max(0, self.leader_high_watermark - self.log.end_offset)

    def visible_end(self, *, read_committed: bool) -> int:
        """The offset before which a consumer may read."""
        return self.log.last_stable_offset if read_committed else self.log.high_watermark

    @property
    def low_watermark(self) -> int:
        """Before it no live replica has anything: records that were deleted are gone for good."""
        starts = (
            state.log_start_offset
            for replica, state in self.followers.items()
            if self._environment.is_eligible(replica, state.broker_epoch)
        )
        return min([self.log.log_start_offset, *starts])

    def is_in_tenure(self, tenure: int) -> bool:
        """Whether this broker has led all the time since `tenure` was read: if not, what it
        appended then may have been cut off, whatever the high watermark says.
        """
        return self.leads and tenure == self.tenure

    def readable_followers(self, offset: int) -> Iterator[tuple[int, int, int]]:
        """Followers in sync that have `offset`: broker, end, and how long ago it had everything."""
        now_ms = self._environment.monotonic_ms()
        for replica in self.in_sync.committed:
            state = self.followers.get(replica)
            if state is not None and state.log_start_offset <= offset <= state.end_offset:
                yield replica, state.end_offset, now_ms - state.caught_up_ms

    def has_enough_replicas(self) -> bool:
        """Whether what the high watermark has passed is as safe as acks=all promises."""
        return len(self.in_sync.maximal) >= self.min_isr

    # The in-sync set.

    def shrink(self) -> None:
        """Propose that whoever has lagged for too long leaves. Called every so often."""
        if not self.leads or not self.followers:
            return
        late = out_of_sync(
            self.in_sync,
            self._broker_id,
            self.followers,
            self.log.end_offset,
            self._environment.monotonic_ms(),
            self._environment.lag_time_max_ms(),
            self._environment.lag_max_messages(),
        )
        if late:
            logger.info("%s: brokers %s fell out of sync", self.topic_partition, sorted(late))
            self._propose(Leaving(late))
        elif self.advance():  # nobody waits for ever for one that was about to join
            self._environment.changed(self.topic_partition)

    def _propose(self, change: IsrChange) -> None:
        self.in_sync = Isr(self.in_sync.committed, change)
        self._proposal = IsrProposal(
            self.topic_partition,
            self.topic_id,
            self.leader_epoch,
            self.partition_epoch,
            tuple(self._member(each) for each in self.in_sync.proposed),
        )
        self._environment.propose(self._proposal)

    def _member(self, broker: int) -> InSyncReplica:
        state = self.followers.get(broker)
        return InSyncReplica(broker, -1 if state is None else state.broker_epoch)

    def settle(self, proposal: IsrProposal, settlement: Settlement) -> None:
        """Hear what became of a proposal, unless the controller has said more since."""
        if proposal is not self._proposal:
            return
        match settlement:
            case Accepted(leader_epoch, partition_epoch, isr):
                if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
                    return
                self._environment.isr_counts.changed(self.isr, isr, self.replicas)
                self.in_sync, self.partition_epoch = Isr(isr), partition_epoch
                self._proposal = None
                logger.info("%s: in sync are %s", self.topic_partition, isr)
                if self.advance():
                    self._environment.changed(self.topic_partition)
            case _ if settlement.code in NOT_DONE:
                self._environment.isr_counts.failed += 1
                self.in_sync, self._proposal = Isr(self.in_sync.committed), None
            case _ if settlement.code in OUTDATED:
                self._environment.isr_counts.failed += 1
                logger.info("%s: %s", self.topic_partition, settlement.code.name)
            case _:
                self._environment.propose(proposal)
