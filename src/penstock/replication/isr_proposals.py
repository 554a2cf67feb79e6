"""How a leader changes the in-sync set: it proposes, and the controller accepts or rejects.

Followers join by what they fetch, and leave when they lag too long.
"""

import logging

from penstock.replication.isr import (
    FollowerFetch,
    Isr,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
    after_fetch,
    may_join,
    out_of_sync,
)
from penstock.replication.partition import Partition
from penstock.replication.proposal import (
    NOT_DONE,
    OUTDATED,
    Accepted,
    InSyncReplica,
    IsrProposal,
    Settlement,
)

logger = logging.getLogger(__name__)


def note_fetch(partition: Partition, fetch: FollowerFetch) -> None:
    """Record a follower's fetch: it may join the ISR, and the high watermark may move."""
    environment, log = partition.environment, partition.log
    before, high_watermark = partition.followers[fetch.replica], log.high_watermark
    now_ms = environment.monotonic_ms()
    state = after_fetch(before, fetch, log.end_offset, now_ms, high_watermark)
    partition.followers[fetch.replica] = state
    if may_join(
        partition.in_sync, fetch.replica, state, high_watermark, partition.epoch_start_offset
    ) and environment.is_eligible(fetch.replica, state.broker_epoch):
        _propose(partition, PendingExpandIsr(fetch.replica))
    if state.end_offset < min(before.acknowledged(high_watermark), high_watermark):
        propose_shrink(partition)  # it lacks committed records, so it must not be elected
    advanced = state.end_offset != before.end_offset and partition.advance()
    if advanced or state.log_start_offset != before.log_start_offset:
        environment.changed(partition.topic_partition)


def propose_shrink(partition: Partition) -> None:
    """Propose the removal of followers that have lagged too long. Called periodically."""
    if not partition.leads or not partition.followers:
        return
    late = out_of_sync(
        partition.in_sync,
        partition.broker_id,
        partition.followers,
        partition.log.end_offset,
        partition.environment.monotonic_ms(),
        partition.environment.lag_time_max_ms(),
        partition.environment.lag_max_messages(),
    )
    if late:
        logger.info(
            "%s: brokers %s fell out of sync; proposing to remove them from the ISR",
            partition.topic_partition,
            sorted(late),
        )
        _propose(partition, PendingShrinkIsr(late))
    elif partition.advance():  # a replica that was about to join may have become too late
        partition.environment.changed(partition.topic_partition)


def _propose(partition: Partition, change: PendingIsrChange) -> None:
    partition.in_sync = Isr(partition.in_sync.committed, change)
    partition.proposal = IsrProposal(
        partition.topic_partition,
        partition.topic_id,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(member(partition, each) for each in partition.in_sync.proposed),
    )
    partition.environment.propose(partition.proposal)


def member(partition: Partition, broker: int) -> InSyncReplica:
    state = partition.followers.get(broker)
    return InSyncReplica(broker, -1 if state is None else state.broker_epoch)


def settle(partition: Partition, proposal: IsrProposal, settlement: Settlement) -> None:
    """Apply the outcome of a proposal, unless newer state has replaced it."""
    if proposal is not partition.proposal:
        return
    match settlement:
        case Accepted(leader_epoch, partition_epoch, isr):
            if leader_epoch != partition.leader_epoch:
                return
            if partition_epoch < partition.partition_epoch:
                return
            partition.environment.isr_counts.changed(partition.isr, isr, partition.replicas)
            partition.in_sync, partition.partition_epoch = Isr(isr), partition_epoch
            partition.proposal = None
            logger.info("%s: the ISR is now %s", partition.topic_partition, isr)
            if partition.advance():
                partition.environment.changed(partition.topic_partition)
        case _ if settlement.code in NOT_DONE:
            partition.environment.isr_counts.failed += 1
            partition.in_sync, partition.proposal = Isr(partition.in_sync.committed), None
        case _ if settlement.code in OUTDATED:
            partition.environment.isr_counts.failed += 1
            logger.info(
                "%s: ISR change rejected: %s", partition.topic_partition, settlement.code.name
            )
        case _:
            partition.environment.propose(proposal)
