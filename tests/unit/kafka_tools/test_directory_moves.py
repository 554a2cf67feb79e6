"""Moves of replicas between log directories, in the words of Kafka's tool."""

import pytest

from penstock.client.log_dirs import LogDirReplica
from penstock.client.reassignment_plan import parse_plan
from penstock.kafka_tools.directory_moves import DirectoryMove, progress_lines, targets
from penstock.types import BrokerId, TopicPartition

REPLICA = LogDirReplica(TopicPartition("t", 0), BrokerId(1))


@pytest.mark.parametrize(
    ("move", "line", "is_done"),
    [
        (
            DirectoryMove("/b"),
            (
                "Partition t-0 is not found in any live log dir on broker 1. There is likely an "
                "offline log directory on the broker."
            ),
            False,
        ),
        (
            DirectoryMove("/b", "/a", "/b"),
            "Reassignment of replica t-0-1 is still in progress.",
            False,
        ),
        (
            DirectoryMove("/b", "/a", "/c"),
            "Partition t-0 on broker 1 is being moved to log dir /c instead of /b.",
            False,
        ),
        (DirectoryMove("/b", "/b"), "Reassignment of replica t-0-1 completed successfully.", True),
        (
            DirectoryMove("/b", "/a"),
            "Partition t-0 on broker 1 is not being moved from log dir /a to /b.",
            True,
        ),
    ],
)
def test_each_state_has_kafkas_wording(move: DirectoryMove, line: str, is_done: bool) -> None:
    assert (progress_lines({REPLICA: move}), move.is_done) == (line, is_done)


def test_a_plan_names_directories_or_any() -> None:
    row = b'{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/b","any"]}'
    assert targets(parse_plan(b'{"version":1,"partitions":[%s]}' % row)) == {REPLICA: "/b"}
    assert progress_lines({}) == ""
