"""Comparison of replicas batch by batch, as pure functions."""

from penstock.kafka_tools.replica_check import Checked, HeldBatch, checked
from penstock.types import BrokerId, TopicPartition

TP = TopicPartition("t", 0)
ONE, TWO = BrokerId(1), BrokerId(2)
A, B, C = HeldBatch(4, 11), HeldBatch(9, 12), HeldBatch(12, 13)


def test_equal_replicas_are_compared_up_to_the_shortest_answer() -> None:
    assert checked(TP, 0, {ONE: [A, B, C], TWO: [A, B]}, 13) == Checked(10, 3, None)


def test_batches_missing_in_a_replica_are_not_compared() -> None:
    assert checked(TP, 0, {ONE: [A, B], TWO: [A, HeldBatch(9, 0)]}, 5) == Checked(5, 0, None)


def test_different_content_is_reported_and_skipped() -> None:
    found = checked(TP, 0, {ONE: [A, B, C], TWO: [A, HeldBatch(9, 7), C]}, 13)
    assert found == Checked(
        13,
        0,
        "partition t-0 has unmatched checksum at offset 9; replica 1's checksum 12; replica 2's "
        "checksum 7",
    )


def test_different_offsets_are_reported() -> None:
    found = checked(TP, 0, {ONE: [A], TWO: [HeldBatch(3, 11)]}, 5)
    assert found.difference == (
        "partition t-0: replica 1's offset 4 doesn't match replica 2's offset 3"
    )
