"""User task assignors: what they may return, and what a streams group does if they fail."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.broker.coordination.assignors import task_assignors
from penstock.config.streams import StreamsConfig
from penstock.config.streams_group import check_streams_config, effective_streams_config
from penstock.coordinator.group.consumer.errors import AssignorFailed
from penstock.coordinator.group.streams.assignors import TaskAssignors
from penstock.coordinator.group.streams.validation import InvalidTaskAssignment, validated_tasks
from penstock.errors import ConfigError, ErrorCode
from penstock.sdk.assignor import (
    StreamsSubscriber,
    TaskAssignment,
    TaskAssignor,
    TaskId,
    TopologyTasks,
    sticky,
)
from support.groups.streams_members import StreamsCluster, StreamsThread, settle

Members = Mapping[str, StreamsSubscriber]
Assigned = Mapping[str, TaskAssignment]


def everything_to_the_first(members: Members, topology: TopologyTasks, /) -> Assigned:
    return {min(members): TaskAssignment(frozenset(topology.tasks))}


def raises(_: Members, __: TopologyTasks, /) -> Assigned:
    raise ZeroDivisionError("a bug")


class Changing:
    """An assignor that can be replaced while it is in use."""

    now: TaskAssignor

    def __init__(self) -> None:
        self.now = sticky

    def __call__(self, members: Members, topology: TopologyTasks, /) -> Assigned:
        return self.now(members, topology)


def cluster_with(assignor: TaskAssignor) -> StreamsCluster:
    return StreamsCluster(assignors=TaskAssignors({"mine": assignor, "sticky": sticky}))


def test_a_user_assignor_assigns_and_members_that_it_omits_get_nothing() -> None:
    cluster = cluster_with(everything_to_the_first)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    b.join()
    a.join()
    settle(a, b)
    assert (len(a.has.active), len(b.has.active)) == (4, 0)
    assert cluster.group.assignment_configs["assignor.name"] == "mine"


def test_a_join_that_needs_a_failing_assignor_is_refused_and_the_group_stays_unchanged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    changing = Changing()
    cluster = cluster_with(changing)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    a.join()
    changing.now = raises
    before = cluster.group
    with caplog.at_level(logging.ERROR), pytest.raises(AssignorFailed, match="mine") as refused:
        b.join()
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "mine failed" in caplog.text
    assert cluster.group == before, "nothing has happened"
    assert a.beat().epoch == 2
    changing.now = sticky
    b.join()
    settle(a, b)
    assert (len(a.has.active), len(b.has.active)) == (2, 2)


def test_an_unchanged_member_keeps_its_tasks_while_the_assignor_fails() -> None:
    changing = Changing()
    cluster = cluster_with(changing)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    a.join()
    b.join()
    settle(a, b)
    changing.now = raises
    had = a.has
    b.beat(epoch=-1)
    for _ in range(3):
        a.beat()
        cluster.pass_ms(30_000)
    assert a.has == had
    assert set(cluster.group.members) == {"a"}, "its session is renewed"
    changing.now = sticky
    settle(a)
    assert len(a.has.active) == 4


MEMBERS = {
    "a": StreamsSubscriber("one"),
    "b": StreamsSubscriber("one"),
    "c": StreamsSubscriber("two"),
}
FIRST, SECOND = TaskId("0", 0), TaskId("1", 0)
WANTED = TopologyTasks((FIRST, SECOND), frozenset({"1"}), 1)


def tasks(*given: TaskId) -> frozenset[TaskId]:
    return frozenset(given)


def test_members_missing_from_a_valid_result_get_no_tasks() -> None:
    given = {"a": TaskAssignment(tasks(FIRST, SECOND)), "c": TaskAssignment(standby=tasks(SECOND))}
    assert validated_tasks(given, MEMBERS, WANTED) == {**given, "b": TaskAssignment()}


BOTH = TaskAssignment(tasks(FIRST, SECOND))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": BOTH, "z": TaskAssignment()}, "no members z"),
        ({"a": TaskAssignment(tasks(FIRST))}, "1_0 is active on no member"),
        ({"a": BOTH, "c": TaskAssignment(tasks(FIRST))}, "0_0 is active with a and c"),
        ({"a": TaskAssignment(tasks(FIRST, SECOND, TaskId("1", 7)))}, "no task 1_7"),
        ({"a": TaskAssignment(BOTH.active, tasks(SECOND))}, "in a process that has the task"),
        (
            {"a": BOTH, "b": TaskAssignment(standby=tasks(SECOND))},
            "in a process that has the task",
        ),
        (
            {
                "a": TaskAssignment(standby=tasks(SECOND)),
                "b": TaskAssignment(standby=tasks(SECOND)),
                "c": BOTH,
            },
            "in a process that has the task",
        ),
        ({"a": BOTH, "c": TaskAssignment(standby=tasks(FIRST))}, "0_0 with state"),
        ({"a": BOTH, "c": TaskAssignment(warmup=tasks(SECOND))}, "warm-up"),
    ],
)
def test_tasks_that_members_cannot_have_are_refused(given: Assigned, words: str) -> None:
    with pytest.raises(InvalidTaskAssignment, match=words):
        validated_tasks(given, MEMBERS, WANTED)


MODULE = """
from penstock.sdk.assignor import sticky

class Mine:
    name = "by-any-other-name"
    def __call__(self, members, topology):
        return sticky(members, topology)
"""


def test_assignors_are_imported_by_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"task_assignors_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = task_assignors(("sticky", f"{name}:Mine"))
    assert list(found.by_name) == ["sticky", "by-any-other-name"]
    assert found.chosen("by-any-other-name") == "by-any-other-name"
    assert found.chosen(None) == found.chosen("gone") == found.default == "sticky"


@pytest.mark.parametrize("path", ["no.such.module:thing", "org.example.Mine"])
def test_an_error_at_startup_names_a_wrong_import_path(path: str) -> None:
    with pytest.raises(ConfigError, match=r"group\.streams\.assignors") as refused:
        task_assignors(("sticky", path))
    assert path in str(refused.value)


def test_a_group_names_its_assignor() -> None:
    given = {"streams.assignor.name": "mine"}
    check_streams_config(given, StreamsConfig())
    assert effective_streams_config(given, StreamsConfig()).streams_assignor_name == "mine"
    assert effective_streams_config({}, StreamsConfig()).streams_assignor_name is None
