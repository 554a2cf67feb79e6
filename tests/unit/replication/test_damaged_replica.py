"""A replica whose last batch has another offset than its leader gave it: no CRC covers that."""

from contextlib import suppress

import pytest

from penstock.log.follower_append import OffsetsOutOfOrder
from penstock.replication.follower import NextStep, next_fetch, process_partition_data
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.wire.messages.fetch import PartitionData
from support.brokers.replica_cluster import ReplicaCluster, flip_last_offset

BIT = 4  # of an offset


def in_sync() -> ReplicaCluster:
    """Two replicas with two batches of three records, all acknowledged."""
    cluster = ReplicaCluster(2)
    for number in cluster.replicas:
        cluster.deliver_state(number)
    for batch in (b"abc", b"def"):
        cluster.produce(0, *(batch[at : at + 1] for at in range(3)))
    for _ in range(3):
        cluster.fetch(1)
    assert cluster.nodes[1].partition.log.end_offset == 6
    return cluster


def without_the_follower(cluster: ReplicaCluster, *, clean: bool) -> None:
    """The follower stops, its disk is damaged, and the leader writes beyond the damaged offset
    before a new epoch begins.
    """
    rig = cluster.nodes[1].rig
    cluster.nodes[1].alive = False
    for at in range(10):
        cluster.produce(0, *(b"%d%d" % (at, each) for each in range(3)))
    if clean:
        rig.store.close()
        flip_last_offset(rig, BIT)
        rig.restart()
    else:
        cluster.flip_offset(1, BIT)
    assert rig.log.end_offset == 6 + (1 << BIT)
    cluster.restart(1)
    for number in cluster.replicas:
        cluster.deliver_state(number)


def test_a_flipped_offset_is_copied_again_before_the_leader_counts_on_it() -> None:
    cluster = in_sync()
    without_the_follower(cluster, clean=False)
    assert cluster.nodes[1].partition.log.unverified_gaps == [3]
    cluster.fetch(1)
    assert cluster.nodes[0].partition.followers[1].end_offset == 3, "it lacks what follows"
    assert cluster.nodes[1].partition.log.end_offset == 3
    cluster.heal()
    assert cluster.nodes[1].values == cluster.nodes[0].values


def test_a_gap_that_the_leader_has_too_is_kept() -> None:
    cluster = in_sync()
    cluster.crash(1)
    cluster.notice()
    cluster.deliver_state(0)
    cluster.restart(1)
    log = cluster.nodes[1].partition.log
    log.unverified_gaps = [3]
    cluster.deliver_state(1)
    cluster.fetch(1)
    assert (log.unverified_gaps, log.end_offset, log.generation) == ([], 6, 0)
    cluster.heal()


def test_what_is_behind_a_gap_is_dropped_if_the_leader_has_nothing_there() -> None:
    cluster = in_sync()
    cluster.produce(0, b"never copied")
    cluster.flip_offset(0, BIT)
    cluster.restart(0)
    for number in cluster.replicas:
        while cluster.nodes[number].inbox:
            cluster.deliver_state(number)
    log = cluster.nodes[0].partition.log
    assert (log.unverified_gaps, log.end_offset) == ([6], 7 + (1 << BIT))
    cluster.fetch(0)
    assert (log.unverified_gaps, log.end_offset) == ([], 6)


@pytest.mark.parametrize(
    ("high_watermark", "step"),
    [(2, NextStep.FIND_RANGE), (3, NextStep.FIND_RANGE), (4, NextStep.FETCH)],
)
def test_the_range_is_asked_only_of_a_leader_whose_log_may_end_at_the_gap(
    high_watermark: int, step: NextStep
) -> None:
    """A response that has no room for all partitions would cost two requests for each."""
    cluster = in_sync()
    node = cluster.nodes[1]
    node.partition.log.unverified_gaps = [3]
    request = next_fetch(node.partition, 1)
    data = PartitionData(high_watermark=high_watermark, records=b"")
    assert process_partition_data(node.partition, request, data, node.logs, 0) is step


def test_a_batch_that_contradicts_the_leader_is_copied_again() -> None:
    """Damaged after a clean stop, so that no start checks it."""
    cluster = in_sync()
    without_the_follower(cluster, clean=True)
    for _ in range(4):
        with suppress(OffsetsOutOfOrder):
            cluster.fetch(1)
    cluster.heal()
    assert cluster.nodes[1].values == cluster.nodes[0].values


def test_a_contradiction_of_the_leader_s_own_batches_truncates_nothing() -> None:
    cluster = in_sync()
    leader, follower = (each.partition.log for each in cluster.nodes)
    cluster.produce(0, b"g", b"h", b"i")
    segment = leader.segments.active
    found = segment.find(6)
    assert found is not None
    cluster.nodes[0].rig.fake.flip_bit(segment.path(), (found[0] + 7) * 8)  # 6 becomes 7
    cluster.nodes[0].rig.fake.flip_bit(segment.path(), (found[0] + 7) * 8 + 1)  # and 5
    for _ in range(4):
        with suppress(OffsetsOutOfOrder):
            cluster.fetch(1)
    assert (follower.end_offset, follower.generation) == (6, 0)


def test_an_in_sync_follower_that_takes_an_offset_back_leaves_the_isr() -> None:
    cluster = in_sync()
    partition, epoch = cluster.nodes[0].partition, cluster.nodes[1].epoch
    assert partition.log.high_watermark == 6
    note_fetch(partition, FollowerFetch(1, 3, 0, epoch))
    cluster.decide_proposal()
    cluster.deliver_settlement()
    assert cluster.state.isr == (0,)
    assert partition.log.high_watermark == 6
    cluster.fetch(1)  # it has the records
    cluster.decide_proposal()
    assert set(cluster.state.isr) == {0, 1}


def test_an_in_sync_follower_whose_first_fetch_lacks_committed_records_leaves_the_isr() -> None:
    """Else it could truncate them, and be elected: both were killed, and came back together."""
    cluster = in_sync()
    assert cluster.nodes[1].partition.log.high_watermark == 6
    cluster.nodes[0].partition.log.unverified_gaps = [3]
    assert cluster.move_leader(1)
    for number in cluster.replicas:
        cluster.deliver_state(number)
    cluster.send_fetch(0)
    cluster.decide_proposal()
    assert cluster.state.isr == (1,)
    cluster.heal()
    assert set(cluster.state.isr) == {0, 1}


def test_a_leader_with_a_gap_before_its_last_batch_keeps_it() -> None:
    cluster = in_sync()
    log = cluster.nodes[1].partition.log
    log.unverified_gaps = [3]
    cluster.crash(0)
    cluster.notice()
    cluster.deliver_state(1)
    assert cluster.nodes[1].partition.leads
    assert (log.unverified_gaps, log.end_offset) == ([], 6)
