"""A partition as leader and as follower: commits, ISR proposals, epochs."""

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode
from penstock.log.partition_log import PartitionLog
from penstock.record.batch import read_header
from penstock.replication import read_fencing
from penstock.replication.environment import Environment
from penstock.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    StaleState,
    UnknownLeaderEpoch,
)
from penstock.replication.isr import FollowerFetch, PendingExpandIsr, PendingShrinkIsr
from penstock.replication.isr_proposals import note_fetch, propose_shrink, settle
from penstock.replication.partition import Partition
from penstock.replication.proposal import Accepted, InSyncReplica, IsrProposal, Rejected
from penstock.replication.read_fencing import OffsetNotAvailable
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig, batch_of
from penstock.types import BrokerId, TopicPartition

LAG_MS = 30_000


class Desk:
    """A partition on broker 1, and what it requests from the broker around it."""

    def __init__(self, config: TopicConfig | None = None) -> None:
        self.rig = LogRig(config or TopicConfig())
        self.now_ms = 1_000_000
        self.lag_max_messages: int | None = None
        self.dead: set[int] = set()
        self.proposals: list[IsrProposal] = []
        self.changes: list[TopicPartition] = []
        self.flushes: list[PartitionLog] = []
        environment = Environment(
            monotonic_ms=lambda: self.now_ms,
            lag_time_max_ms=lambda: LAG_MS,
            lag_max_messages=lambda: self.lag_max_messages,
            is_eligible=lambda broker, _: broker not in self.dead,
            propose=self.proposals.append,
            changed=self.changes.append,
            flush=self.flushes.append,
        )
        self.partition = Partition(BrokerId(1), PARTITION, TOPIC_ID, self.rig.log, environment)

    def append(self, value: bytes = b"x", acks: int = -1) -> int:
        batch = batch_of(value)
        appended = self.partition.append(batch, read_header(batch), acks, 0)
        assert self.changes.pop() == PARTITION
        return appended.last_offset

    def fetch(self, replica: int, offset: int, broker_epoch: int = 7) -> None:
        note_fetch(self.partition, FollowerFetch(replica, offset, broker_epoch=broker_epoch))

    @property
    def committed(self) -> int:
        return self.partition.log.high_watermark


def leading(isr: tuple[int, ...] = (1, 2, 3), *, min_isr: int = 1) -> Desk:
    desk = Desk(TopicConfig(min_insync_replicas=min_isr))
    desk.partition.lead(5, isr, (1, 2, 3), 10)
    return desk


def test_records_on_every_in_sync_replica_are_committed() -> None:
    desk = leading()
    desk.append()
    desk.append()
    desk.fetch(2, 2)
    assert desk.committed == 0
    desk.fetch(3, 1)
    assert desk.committed == 1
    assert desk.changes == [PARTITION]
    desk.fetch(3, 2)
    assert desk.committed == 2


def test_a_fetch_that_changes_nothing_wakes_no_waiter() -> None:
    desk = leading()
    desk.append()
    desk.fetch(2, 0)
    desk.fetch(2, 0)
    assert desk.changes == []


@pytest.mark.parametrize("flush_messages", [2, 3])
def test_an_append_wakes_waiters_and_requests_a_flush_that_is_due(flush_messages: int) -> None:
    desk = Desk(TopicConfig(flush_messages=flush_messages))
    desk.partition.lead(5, (1,), (1,), 10)
    for count in (1, 2):
        batch = batch_of(b"x")
        desk.partition.append(batch, read_header(batch), 1, 0)
        assert desk.changes == [PARTITION] * count
    assert desk.flushes == ([desk.partition.log] if flush_messages == 2 else [])


def test_only_a_leader_appends() -> None:
    desk = Desk()
    desk.partition.follow(2, 5, (1, 2), 10)
    desk.changes.clear()
    batch = batch_of(b"x")
    with pytest.raises(NotLeader):
        desk.partition.append(batch, read_header(batch), 1, 0)
    assert (desk.partition.log.end_offset, desk.changes) == (0, [])


def test_too_few_in_sync_replicas_reject_acks_all_and_commit_nothing() -> None:
    desk = leading((1,), min_isr=2)
    with pytest.raises(NotEnoughReplicas):
        desk.append()
    desk.append(acks=1)
    assert desk.committed == 0
    assert not desk.partition.has_enough_replicas()


def test_a_joining_replica_counts_for_min_insync_after_the_append() -> None:
    """As in Kafka, which counts the maximal set: every replica of it has the committed records."""
    desk = leading((1,), min_isr=2)
    desk.append(acks=1)
    desk.fetch(2, 1)
    assert desk.partition.in_sync.change == PendingExpandIsr(2)
    assert desk.partition.has_enough_replicas()
    assert desk.committed == 0, "the confirmed set is still too small"
    settle(desk.partition, desk.proposals[0], Accepted(5, 11, (1, 2)))
    assert desk.committed == 1


# Proposals


def test_a_lagging_follower_is_proposed_for_removal_once() -> None:
    desk = leading()
    desk.append()
    desk.fetch(2, 1)
    desk.now_ms += LAG_MS + 1
    propose_shrink(desk.partition)
    propose_shrink(desk.partition)
    (proposal,) = desk.proposals
    assert proposal == IsrProposal(
        PARTITION, TOPIC_ID, 5, 10, (InSyncReplica(1), InSyncReplica(2, 7))
    )
    assert desk.partition.in_sync.change == PendingShrinkIsr(frozenset({3}))
    assert desk.committed == 0
    settle(desk.partition, proposal, Accepted(5, 11, (1, 2)))
    assert desk.partition.isr == (1, 2)
    assert desk.partition.partition_epoch == 11
    assert desk.committed == 1
    assert desk.changes == [PARTITION]


def test_idle_followers_stay() -> None:
    desk = leading()
    desk.append()
    desk.fetch(2, 1)
    desk.fetch(3, 1)
    desk.now_ms += 100 * LAG_MS
    propose_shrink(desk.partition)
    assert desk.proposals == []


def test_a_dead_follower_is_not_proposed_for_the_isr() -> None:
    desk = leading((1,))
    desk.dead.add(2)
    desk.append()
    desk.fetch(2, 1)
    assert desk.proposals == []


@pytest.mark.parametrize("code", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_a_proposal_that_was_certainly_not_written_is_dropped(code: ErrorCode) -> None:
    desk = leading((1, 2))
    desk.fetch(3, 0)
    settle(desk.partition, desk.proposals[0], Rejected(code))
    assert desk.partition.in_sync.change is None
    desk.fetch(3, 0)
    assert len(desk.proposals) == 2


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NEW_LEADER_ELECTED])
def test_an_outdated_proposal_stays_pending_until_the_next_leader_and_isr(code: ErrorCode) -> None:
    desk = leading((1, 2))
    desk.fetch(3, 0)
    settle(desk.partition, desk.proposals[0], Rejected(code))
    assert desk.partition.in_sync.maximal == (1, 2, 3)
    desk.fetch(3, 0)
    assert len(desk.proposals) == 1
    desk.partition.lead(6, (1, 2), (1, 2, 3), 12)
    assert list(desk.partition.in_sync.maximal) == [1, 2]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_proposal_that_may_have_been_written_is_proposed_again(code: ErrorCode) -> None:
    """Perhaps to another controller: the one that refused may have been deposed."""
    desk = leading((1, 2))
    desk.fetch(3, 0)
    settle(desk.partition, desk.proposals[0], Rejected(code))
    assert desk.proposals == [desk.proposals[0]] * 2
    assert desk.partition.in_sync.maximal == (1, 2, 3)


def test_an_outcome_that_arrives_after_the_next_leader_and_isr_is_ignored() -> None:
    desk = leading((1, 2))
    desk.fetch(3, 0)
    desk.partition.lead(6, (1, 2), (1, 2, 3), 12)
    settle(desk.partition, desk.proposals[0], Accepted(5, 11, (1, 2, 3)))
    assert (desk.partition.isr, desk.partition.partition_epoch) == ((1, 2), 12)


def test_a_repeated_leader_and_isr_does_not_end_a_proposal() -> None:
    """Otherwise the leader would neither learn that the controller accepted, nor retry."""
    desk = leading()
    desk.append()
    desk.now_ms += LAG_MS + 1
    propose_shrink(desk.partition)
    desk.partition.lead(5, (1, 2, 3), (1, 2, 3), 10)
    settle(desk.partition, desk.proposals[0], Accepted(5, 11, (1,)))
    assert desk.partition.isr == (1,)


# Roles


def test_older_epochs_are_rejected() -> None:
    desk = leading()
    with pytest.raises(StaleState):
        desk.partition.lead(4, (1,), (1, 2, 3), 11)
    with pytest.raises(StaleState):
        desk.partition.follow(2, 6, (1, 2, 3), 9)
    assert desk.partition.isr == (1, 2, 3)


def test_a_new_leader_does_not_know_the_high_watermark_yet() -> None:
    desk = Desk()
    for _ in range(3):
        desk.rig.append(batch_of(b"x"))
    desk.partition.lead(5, (1, 2), (1, 2), 10)
    with pytest.raises(OffsetNotAvailable):
        read_fencing.check_latest_known(desk.partition, desk.committed)
    read_fencing.check_latest_known(desk.partition, 3)  # a broker asks for the log end offset
    desk.fetch(2, 2)
    with pytest.raises(OffsetNotAvailable):
        read_fencing.check_latest_known(desk.partition, desk.committed)
    desk.fetch(2, 3)
    read_fencing.check_latest_known(desk.partition, desk.committed)


def test_a_follower_forgets_other_replicas_and_ends_its_tenure() -> None:
    desk = leading()
    tenure = desk.partition.tenure
    assert desk.partition.follow(2, 6, (1, 2, 3), 11)
    assert not desk.partition.follow(2, 6, (1, 2, 3), 12), "nothing new about its leader"
    assert (desk.partition.leads, desk.partition.followers) == (False, {})
    assert desk.partition.tenure == tenure + 1
    assert PARTITION in desk.changes
    with pytest.raises(NotLeader):
        desk.partition.check_leader()


def test_a_new_epoch_of_the_same_leader_keeps_what_it_knows() -> None:
    desk = leading()
    desk.append()
    desk.fetch(2, 1)
    tenure = desk.partition.tenure
    desk.partition.lead(6, (1, 2), (1, 2, 3), 11)
    assert desk.committed == 1
    assert desk.partition.tenure == tenure
    assert desk.partition.log.epochs.entries == [(5, 0), (6, 1)]


def test_epochs_are_checked_before_leadership() -> None:
    desk = leading()
    with pytest.raises(FencedLeaderEpoch):
        desk.partition.check_leader(4)
    with pytest.raises(UnknownLeaderEpoch):
        desk.partition.check_leader(6)
    desk.partition.follow(2, 6, (1, 2, 3), 11)
    with pytest.raises(FencedLeaderEpoch):
        desk.partition.check_leader(5)
    with pytest.raises(NotLeader):
        desk.partition.check_leader(6)
    read_fencing.check_readable(desk.partition, 6)
    with pytest.raises(UnknownLeaderEpoch):
        read_fencing.check_readable(desk.partition, 7)


def test_fetches_of_unassigned_brokers_and_of_older_broker_epochs_are_rejected() -> None:
    desk = leading()
    with pytest.raises(UnknownLeaderEpoch):
        read_fencing.check_follower(desk.partition, 9, 5, -1)
    with pytest.raises(NotLeader):
        read_fencing.check_follower(desk.partition, 9, -1, -1)
    read_fencing.check_follower(desk.partition, 2, 5, 7)
    desk.fetch(2, 0, broker_epoch=7)
    read_fencing.check_follower(desk.partition, 2, 5, 7)
    read_fencing.check_follower(desk.partition, 2, 5, -1)
    with pytest.raises(NotLeader):
        read_fencing.check_follower(desk.partition, 2, 5, 6)


def test_a_followers_high_watermark_follows_the_leader_and_never_decreases() -> None:
    desk = Desk()
    for _ in range(3):
        desk.rig.append(batch_of(b"x"))
    desk.partition.follow(2, 5, (1, 2), 10)
    desk.partition.update_from_leader(9, 0)
    assert desk.committed == 3
    desk.partition.update_from_leader(2, 1)
    assert desk.committed == 3
    assert desk.partition.log.log_start_offset == 1


def test_in_sync_followers_that_have_an_offset_are_readable() -> None:
    desk = leading((1, 2))
    desk.append()
    desk.fetch(2, 1)
    desk.fetch(3, 1)
    desk.now_ms += 40
    assert list(read_fencing.readable_followers(desk.partition, 1)) == [(2, 1, 40)]
    assert list(read_fencing.readable_followers(desk.partition, 2)) == []


def test_a_follower_that_lacks_too_many_records_stays_out_of_the_isr() -> None:
    desk = leading((1, 2), min_isr=1)
    desk.fetch(2, 0)
    for _ in range(5):
        desk.append()
    propose_shrink(desk.partition)
    assert desk.proposals == [], "only time counts"
    desk.lag_max_messages = 4
    propose_shrink(desk.partition)
    assert [each.broker for each in desk.proposals[0].isr] == [1]
    settle(desk.partition, desk.proposals[0], Accepted(5, 11, (1,)))
    assert desk.committed == 5, "what it lacks is not waited for"
