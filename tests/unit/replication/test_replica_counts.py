"""Counters of replication for `/metrics`."""

from penstock.replication.environment import IsrCounts
from support.brokers.replica_cluster import LAG_MAX_MS, Node, ReplicaCluster


def counts(node: Node) -> IsrCounts:
    return node.partition.environment.isr_counts


def informed(cluster: ReplicaCluster) -> None:
    for number in cluster.replicas:
        cluster.deliver_state(number)


def test_a_shrink_and_an_expansion_count_once_they_are_confirmed() -> None:
    cluster = ReplicaCluster(2)
    informed(cluster)
    leader = cluster.nodes[0]
    cluster.produce(0, b"a")
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(0)
    assert counts(leader) == IsrCounts(), "the controller has not agreed yet"
    cluster.decide_proposal()
    cluster.deliver_settlement()
    assert counts(leader) == IsrCounts(shrinks=1)
    for _ in range(2):
        cluster.fetch(1)
    cluster.decide_proposal()
    cluster.deliver_settlement()
    assert counts(leader) == IsrCounts(shrinks=1, expands=1)


def test_a_rejected_proposal_counts_as_failed() -> None:
    cluster = ReplicaCluster(2)
    informed(cluster)
    cluster.produce(0, b"a")
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(0)
    cluster.move_leader(1)
    cluster.decide_proposal()
    cluster.deliver_settlement()
    assert counts(cluster.nodes[0]) == IsrCounts(failed=1)


def test_an_isr_that_loses_one_replica_and_gains_another_counts_for_both() -> None:
    reported = IsrCounts()
    reported.changed((0, 1), (0, 2), (0, 1, 2))
    assert reported == IsrCounts(shrinks=1, expands=1)


def test_a_follower_knows_how_many_committed_records_it_lacks() -> None:
    cluster = ReplicaCluster(3)
    informed(cluster)
    late = cluster.nodes[2].partition
    assert late.lag == 0
    cluster.crash(2)
    cluster.notice()
    informed(cluster)
    for value in (b"a", b"b", b"c"):
        cluster.produce(0, value)
        for _ in range(2):
            cluster.fetch(1)
    cluster.restart(2)
    informed(cluster)
    cluster.fetch(2)  # one batch of three
    assert cluster.nodes[2].partition.lag == 2
    for _ in range(2):
        cluster.fetch(2)
    assert cluster.nodes[2].partition.lag == 0
    assert cluster.nodes[0].partition.lag == 0, "a leader has no leader"
