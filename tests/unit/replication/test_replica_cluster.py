"""Scenarios of replication, and mutants that show what each rule is for.

Each mutant at the end breaks one rule. If no scenario notices a mutant, nothing guards its rule.
"""

from collections.abc import Callable

import pytest

from penstock.log.epochs import LeaderEpochs
from penstock.log.truncation import truncate_to
from penstock.replication import isr_proposals, read_fencing
from penstock.replication import partition as partition_module
from penstock.replication.isr import FollowerState, Isr
from penstock.replication.partition import Partition
from penstock.replication.proposal import InSyncReplica
from penstock.replication.truncation import EpochEnd, OffsetTruncation
from support.brokers.replica_cluster import LAG_MAX_MS, ReplicaCluster


def led_by_first(brokers: int = 3, *, min_isr: int = 1) -> ReplicaCluster:
    cluster = ReplicaCluster(brokers, min_isr)
    for number in cluster.replicas:
        cluster.deliver_state(number)
    return cluster


def informed(cluster: ReplicaCluster) -> None:
    """Deliver all state changes to all live brokers."""
    for number in cluster.replicas:
        while cluster.nodes[number].alive and cluster.nodes[number].inbox:
            cluster.deliver_state(number)


def settled(cluster: ReplicaCluster) -> None:
    cluster.decide_proposal()
    cluster.deliver_settlement()


def check_acked(cluster: ReplicaCluster) -> None:
    leader = cluster.nodes[cluster.state.leader]
    for offset, value in cluster.acked.items():
        assert leader.values.get(offset) == value, f"{value!r} at {offset} is lost"


# Scenarios: each ends with what must hold.


def acknowledged_when_all_have_it() -> None:
    cluster = led_by_first()
    cluster.produce(0, b"a")
    assert cluster.acked == {}
    cluster.fetch(1)
    cluster.fetch(1)
    assert cluster.acked == {}, "broker 2 does not have it"
    cluster.crash(1)
    cluster.crash(0)
    cluster.notice()
    informed(cluster)
    check_acked(cluster)
    cluster = led_by_first()
    cluster.produce(0, b"a")
    for number in (1, 2, 1, 2):
        cluster.fetch(number)
    assert cluster.acked == {0: b"a"}


def a_follower_that_leaves_counts_until_the_controller_agrees() -> None:
    cluster = led_by_first(2)
    cluster.produce(0, b"a")
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(0)
    cluster.produce(0, b"b")
    assert cluster.acked == {}, "broker 1 is still in the set that leaders are elected from"
    cluster.decide_proposal()
    assert cluster.acked == {}
    cluster.deliver_settlement()
    assert cluster.acked == {0: b"a", 1: b"b"}
    cluster.crash(0)
    cluster.notice()
    assert cluster.state.leader == -1, "only broker 0 has everything"


def a_deposed_leaders_shrink_is_refused() -> None:
    cluster = led_by_first(2)
    cluster.produce(0, b"lost")
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(0)
    cluster.move_leader(1)
    cluster.deliver_state(1)
    settled(cluster)
    assert cluster.acked == {}
    assert set(cluster.state.isr) == {0, 1}
    cluster.produce(1, b"kept")
    informed(cluster)
    for _ in range(3):
        cluster.fetch(0)
    assert cluster.acked == {0: b"kept"}
    assert cluster.nodes[0].values == {0: b"kept"}


def committed_records_survive_a_follower_that_lags_with_its_high_watermark() -> None:
    """KIP-101, the first scenario: truncating to the high watermark loses acknowledged records."""
    cluster = led_by_first(2)
    cluster.produce(0, b"a")
    cluster.fetch(1)
    cluster.send_fetch(1)  # the leader commits by this request; its response is lost
    assert cluster.acked == {0: b"a"}
    assert cluster.nodes[1].partition.log.high_watermark == 0
    cluster.move_leader(0)  # a new epoch of the same leader
    informed(cluster)
    cluster.crash(0)
    cluster.notice()
    informed(cluster)
    check_acked(cluster)


def two_leaders_records_at_one_offset_do_not_stay() -> None:
    """KIP-101, the second scenario: the replicas have different records at the same offset."""
    cluster = led_by_first(2)
    cluster.produce(0, b"a")
    for _ in range(2):
        cluster.fetch(1)
    cluster.produce(0, b"never copied")
    cluster.crash(0)
    cluster.notice()
    informed(cluster)
    cluster.produce(1, b"b")
    assert cluster.acked == {0: b"a", 1: b"b"}
    cluster.restart(0)
    informed(cluster)
    for _ in range(4):
        cluster.fetch(0)
    settled(cluster)
    assert cluster.nodes[0].values == cluster.nodes[1].values == {0: b"a", 1: b"b"}


def only_who_has_everything_joins() -> None:
    cluster = led_by_first(2)
    cluster.crash(1)
    cluster.notice()
    informed(cluster)
    for value in (b"a", b"b", b"c"):
        cluster.produce(0, value)
    cluster.restart(1)
    informed(cluster)
    cluster.fetch(1)
    settled(cluster)
    assert cluster.state.isr == (0,)
    for _ in range(4):
        cluster.fetch(1)
    settled(cluster)
    assert set(cluster.state.isr) == {0, 1}
    cluster.crash(0)
    cluster.notice()
    informed(cluster)
    check_acked(cluster)


def a_broker_of_a_former_life_does_not_join() -> None:
    cluster = led_by_first(2)
    cluster.crash(1)
    cluster.notice()
    informed(cluster)
    cluster.produce(0, b"a")
    cluster.restart(1)
    informed(cluster)
    for _ in range(3):
        cluster.fetch(1)
    assert cluster.proposals, "it has caught up"
    cluster.lose_power(1)
    cluster.restart(1)
    settled(cluster)
    assert cluster.state.isr == (0,)


def two_in_sync_are_needed() -> None:
    cluster = led_by_first(2, min_isr=2)
    cluster.crash(1)
    cluster.notice()
    informed(cluster)
    assert not cluster.produce(0, b"a")
    assert cluster.nodes[0].partition.log.end_offset == 0


def a_late_joiner_is_waited_for() -> None:
    """With only the leader in sync, a busy partition's follower must get a chance to join."""
    cluster = led_by_first(2)
    cluster.crash(1)
    cluster.notice()
    informed(cluster)
    cluster.produce(0, b"a")
    cluster.restart(1)
    informed(cluster)
    cluster.fetch_bytes = 1 << 20
    for count in range(20):
        cluster.produce(0, b"%d" % count)  # it is always one fetch behind
        cluster.fetch(1)
        settled(cluster)
    assert set(cluster.state.isr) == {0, 1}


STORIES = [
    acknowledged_when_all_have_it,
    a_follower_that_leaves_counts_until_the_controller_agrees,
    a_deposed_leaders_shrink_is_refused,
    committed_records_survive_a_follower_that_lags_with_its_high_watermark,
    two_leaders_records_at_one_offset_do_not_stay,
    only_who_has_everything_joins,
    a_broker_of_a_former_life_does_not_join,
    two_in_sync_are_needed,
    a_late_joiner_is_waited_for,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_every_scenario_holds(story: Callable[[], None]) -> None:
    story()


# Mutants


def ack_before_replication(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Partition) -> bool:
        return self.log.advance_high_watermark(self.log.end_offset)

    patch.setattr(Partition, "advance", advance)


def cut_by_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """What Kafka did before KIP-101: a new follower always truncates to its high watermark."""
    follow = Partition.follow

    def following(
        self: Partition,
        leader: int,
        leader_epoch: int,
        replicas: tuple[int, ...],
        partition_epoch: int = -1,
    ) -> bool:
        truncate_to(self.log, self.log.high_watermark)
        return follow(self, leader, leader_epoch, replicas, partition_epoch)

    patch.setattr(Partition, "follow", following)


def never_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(read_fencing, "diverging_epoch", lambda *_: None)


def skip_the_epoch_check(patch: pytest.MonkeyPatch) -> None:
    """Neither the leader's epoch nor the epoch of the follower's last record is checked."""
    patch.setattr(Partition, "check_leader", lambda *_: None)
    patch.setattr(read_fencing, "diverging_epoch", lambda *_: None)


def elect_from_out_of_sync(patch: pytest.MonkeyPatch) -> None:
    elect = ReplicaCluster._elect

    def anyone(self: ReplicaCluster) -> None:
        before = self.state
        alive = [each.id for each in self.nodes if each.alive]
        if alive and before.leader not in alive and not set(alive) & set(before.isr):
            isr = (alive[0],)
            self.state = type(before)(
                before.leader, before.leader_epoch, isr, before.partition_epoch
            )
        elect(self)

    patch.setattr(ReplicaCluster, "_elect", anyone)


def shrink_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Isr, "maximal", property(lambda self: self.proposed))


def join_when_ever(patch: pytest.MonkeyPatch) -> None:
    def joins(isr: Isr, replica: int, _state: FollowerState, _hw: int, _start: int) -> bool:
        return isr.change is None and replica not in isr.committed

    patch.setattr(isr_proposals, "may_join", joins)


def forget_lives(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(isr_proposals, "member", lambda _, broker: InSyncReplica(broker))


def min_isr_of_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partition_module, "effective_min_isr", lambda *_: 1)


def wait_for_nobody_new(patch: pytest.MonkeyPatch) -> None:
    def holds(maximal: tuple[int, ...], replica: int, *_: object, **__: object) -> bool:
        return replica in maximal

    patch.setattr(partition_module, "holds_back", holds)


MUTANTS = [
    ack_before_replication,
    cut_by_high_watermark,
    never_cut,
    skip_the_epoch_check,
    elect_from_out_of_sync,
    shrink_at_once,
    join_when_ever,
    forget_lives,
    min_isr_of_one,
    wait_for_nobody_new,
]


@pytest.mark.pure
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    noticed = [story.__name__ for story in STORIES if fails(story)]
    print(mutant.__name__, "is noticed by", noticed)
    assert noticed


def fails(story: Callable[[], None]) -> bool:
    try:
        story()
    except Exception:  # noqa: BLE001  a mutant may break anything
        return True
    return False


def test_the_rule_before_kip_101_loses_records_that_the_new_one_keeps() -> None:
    """Composed as in the lab: the rule is an argument."""

    def by_high_watermark(
        _: EpochEnd, __: LeaderEpochs, ___: int, high_watermark: int
    ) -> OffsetTruncation:
        return OffsetTruncation(high_watermark, is_complete=True)

    found = {}
    for rule in (None, by_high_watermark):
        cluster = ReplicaCluster(2) if rule is None else ReplicaCluster(2, rule=rule)
        informed(cluster)
        cluster.produce(0, b"a")
        cluster.fetch(1)
        cluster.send_fetch(1)
        assert cluster.acked == {0: b"a"}
        cluster.move_leader(1)
        cluster.deliver_state(1)  # it leads for a moment without writing
        cluster.move_leader(0)
        informed(cluster)
        cluster.fetch(1)
        found[rule is None] = dict(cluster.nodes[1].values)
    assert found == {True: {0: b"a"}, False: {}}
