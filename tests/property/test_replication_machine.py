"""Records acknowledged with acks=all survive any order of messages, crashes and elections."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.log.old_segments import delete_old_segments
from support.brokers.replica_cluster import LAG_MAX_MS, ReplicaCluster

brokers = st.integers(0, 2)


class ReplicationMachine(RuleBasedStateMachine):
    """Three replicas, and a model of what was acknowledged or read."""

    @initialize(min_isr=st.integers(1, 2))
    def begin(self, min_isr: int) -> None:
        self.cluster = ReplicaCluster(min_isr=min_isr)
        self.count = 0
        self.seen: dict[int, bytes] = {}
        """Every value that a consumer could have read, by offset."""
        for number in self.cluster.replicas:
            self.cluster.deliver_state(number)

    @rule(broker=brokers)
    def produce(self, broker: int) -> None:
        self.count += 1
        self.cluster.produce(broker, b"%d" % self.count)

    @rule(fetching=st.lists(brokers, min_size=1, max_size=8), informed=st.sets(brokers))
    def work(self, fetching: list[int], informed: set[int]) -> None:
        """Some brokers learn the newest state, leaders append, some followers fetch."""
        for number in informed:
            while self.cluster.nodes[number].inbox:
                self.cluster.deliver_state(number)
        for number in fetching:
            for leader in self.cluster.replicas:
                self.produce(leader)
            self.cluster.fetch(number)

    @rule(broker=brokers)
    def catch_up(self, broker: int) -> None:
        """A broker receives all state changes and fetches until it is caught up."""
        while self.cluster.nodes[broker].inbox:
            self.cluster.deliver_state(broker)
        for _ in range(6):
            self.cluster.fetch(broker)

    @rule(broker=brokers)
    def fetch(self, broker: int) -> None:
        self.cluster.fetch(broker)

    @rule(broker=brokers)
    def ask(self, broker: int) -> None:
        self.cluster.send_fetch(broker)

    @rule(broker=brokers)
    def answer(self, broker: int) -> None:
        self.cluster.receive_fetch(broker)

    @rule(broker=brokers)
    def hear_controller(self, broker: int) -> None:
        self.cluster.deliver_state(broker)

    @rule(lost=st.booleans())
    def alter_partition(self, lost: bool) -> None:
        self.cluster.decide_proposal()
        self.cluster.deliver_settlement(lost=lost)

    @rule()
    def controller_receives_proposal(self) -> None:
        self.cluster.decide_proposal()

    @rule(broker=brokers, late=st.booleans())
    def shrink(self, broker: int, late: bool) -> None:
        self.cluster.now_ms += LAG_MAX_MS + 1 if late else 1
        self.cluster.shrink(broker)

    @rule(broker=brokers)
    def prefer(self, broker: int) -> None:
        self.cluster.move_leader(broker)

    @rule(broker=brokers)
    def flush(self, broker: int) -> None:
        if self.cluster.nodes[broker].alive:
            self.cluster.nodes[broker].rig.flush()

    @rule(broker=brokers, loses_power=st.booleans(), noticed=st.booleans())
    def crash(self, broker: int, loses_power: bool, noticed: bool) -> None:
        cluster = self.cluster
        if cluster.nodes[broker].alive:
            if loses_power and cluster.may_lose_power(broker):
                cluster.lose_power(broker)
            else:
                cluster.crash(broker)
            if noticed:
                cluster.notice()

    @rule(broker=brokers, bit=st.integers(0, 6), noticed=st.booleans())
    def flip_offset(self, broker: int, bit: int, noticed: bool) -> None:
        cluster = self.cluster
        if cluster.nodes[broker].alive and cluster.may_lose_power(broker):
            cluster.flip_offset(broker, bit)
            if noticed:
                cluster.notice()

    @rule(broker=brokers)
    def restart(self, broker: int) -> None:
        if not self.cluster.nodes[broker].alive:
            self.cluster.restart(broker)

    @rule()
    def controller_looks(self) -> None:
        self.cluster.notice()

    @rule(broker=brokers)
    @precondition(lambda self: len(self.cluster.acked) > 2)
    def delete_records(self, broker: int) -> None:
        node = self.cluster.nodes[broker]
        if node.alive and node.partition.leads:
            log = node.partition.log
            log.maybe_increment_log_start(min(log.high_watermark, min(self.cluster.acked) + 1))
            delete_old_segments(log, 0)

    @invariant()
    def in_sync_replicas_have_what_was_acknowledged(self) -> None:
        cluster = self.cluster
        for number in cluster.state.isr:
            node = cluster.nodes[number]
            if node.alive and number not in cluster.unclean_shutdowns:
                start, found = node.partition.log.log_start_offset, node.values
                for offset, value in cluster.acked.items():
                    assert offset < start or found.get(offset) == value, (
                        f"broker {number} has lost {value!r} at {offset}"
                    )

    @invariant()
    def an_offset_has_one_value_for_all_readers(self) -> None:
        for node in self.cluster.nodes:
            if node.alive:
                committed = node.partition.log.high_watermark
                for offset, value in node.values.items():
                    if offset < committed:
                        assert self.seen.setdefault(offset, value) == value, (
                            f"{offset} was {self.seen[offset]!r}, broker {node.id} says {value!r}"
                        )

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        self.cluster.heal()
        first, *others = (node.bytes_committed for node in self.cluster.nodes)
        starts = {node.partition.log.log_start_offset for node in self.cluster.nodes}
        if len(starts) == 1:
            assert all(other == first for other in others), "replicas differ"
        self.in_sync_replicas_have_what_was_acknowledged()
        self.an_offset_has_one_value_for_all_readers()


ReplicationMachine.TestCase.settings = settings(
    max_examples=2 * settings().max_examples + 10, stateful_step_count=60, deadline=None
)
TestReplication = ReplicationMachine.TestCase


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_replication_survives_a_long_run() -> None:
    run_state_machine_as_test(
        ReplicationMachine,
        settings=settings(max_examples=10_000, stateful_step_count=100, deadline=None),
    )
