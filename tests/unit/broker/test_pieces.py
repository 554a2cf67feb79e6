"""Long requests in pieces and turns: how answers of pieces are joined, and how much is a turn."""

from itertools import pairwise
from types import SimpleNamespace
from typing import cast

from penstock.broker.context import Context
from penstock.broker.handlers.alter_replica_log_dirs import altered
from penstock.broker.handling.turns import PARTITIONS_A_TURN, by_topic, joined
from penstock.broker.parked import Parked
from penstock.errors import ErrorCode
from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse


def test_an_error_in_one_piece_is_the_error_of_the_whole() -> None:
    denied = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    together = joined([AddPartitionsToTxnResponse(), denied], "results_by_transaction")
    assert together.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_pieces_that_wait_are_answered_together() -> None:
    ready: dict[str, DescribeGroupsResponse] = {}

    def piece(name: str) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(groups=[DescribedGroup(group_id=name)])

    def later(name: str) -> Parked[DescribeGroupsResponse]:
        return Parked([name], 10, lambda: ready.get(name), lambda: piece(f"{name} late"))

    together = joined([piece("zero"), later("one"), later("two")], "groups")
    assert set(together.keys) == {"one", "two"}
    ready["two"] = piece("2")
    assert together.attempt() is None
    assert [each.group_id for each in together.expire().groups] == ["zero", "one late", "two late"]
    ready["one"] = piece("1")
    assert [each.group_id for each in together.attempt().groups] == ["zero", "1", "2"]


def test_a_piece_that_is_ready_when_joined_is_not_waited_for() -> None:
    """Its change was signalled before anything listened for it."""
    done = DescribeGroupsResponse(groups=[DescribedGroup(group_id="g")])
    later = Parked(["key"], 5000, lambda: done, lambda: done)
    assert joined([done, later], "groups").groups == [*done.groups, *done.groups]


def test_moves_between_directories_start_a_few_per_turn() -> None:
    """Each move creates a log."""
    begun: list[object] = []
    moves = SimpleNamespace(start=lambda *each: begun.append(each))
    ctx = SimpleNamespace(services=SimpleNamespace(replicas=SimpleNamespace(log_dir_moves=moves)))
    topic = AlterReplicaLogDirTopic("t", list(range(100)))
    steps = altered(
        AlterReplicaLogDirsRequest([AlterReplicaLogDir("/d", [topic])]), cast("Context", ctx)
    )
    counts = [0]
    while next(steps, steps) is not steps:
        counts.append(len(begun))
    assert max(after - before for before, after in pairwise([*counts, len(begun)])) <= 5
    assert len(begun) == 100


def test_topics_without_partitions_take_turns_too() -> None:
    steps = by_topic(
        range(3 * PARTITIONS_A_TURN), lambda _: (), lambda *_: 0, lambda topic, _: topic
    )
    assert len(list(steps)) == 3
