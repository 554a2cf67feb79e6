"""User assignors: what they may return, and what a group does if they fail."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.broker.coordination.assignors import assignors
from penstock.coordinator.group.consumer.assignor.assignor import Assignor, Assignors
from penstock.coordinator.group.consumer.errors import AssignorFailed
from penstock.errors import ConfigError, ErrorCode
from penstock.sdk.assignor import (
    Assignment,
    GroupAssignment,
    Subscriber,
    TopicIdPartition,
    Uuid,
    uniform,
)
from support.groups.consumer_members import Cluster, Consumer, settle

Partitions = Mapping[Uuid, int]
Subscribers = Mapping[str, Subscriber]


def everything_to_the_first(subscribers: Subscribers, partitions: Partitions) -> GroupAssignment:
    first = min(subscribers)
    return {
        first: frozenset(
            TopicIdPartition(topic, index)
            for topic, count in partitions.items()
            for index in range(count)
        )
    }


class Changing:
    """An assignor that can be replaced while it is in use."""

    now: Assignor

    def __init__(self) -> None:
        self.now = uniform

    def __call__(self, subscribers: Subscribers, partitions: Partitions) -> GroupAssignment:
        return self.now(subscribers, partitions)


def cluster_with(assignor: Assignor) -> Cluster:
    return Cluster(assignors=Assignors({"mine": assignor, "uniform": uniform}))


def test_a_user_assignor_assigns_and_members_that_it_omits_get_nothing() -> None:
    cluster = cluster_with(everything_to_the_first)
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    b.join()
    a.join()
    settle(a, b)
    assert (len(a.has), len(b.has)) == (4, 0)


def raises(_: Subscribers, __: Partitions) -> GroupAssignment:
    raise ZeroDivisionError("a bug")


def gives_what_is_not_there(subscribers: Subscribers, partitions: Partitions) -> GroupAssignment:
    (topic,) = partitions
    return {min(subscribers): frozenset({TopicIdPartition(topic, 4)})}


def gives_twice(subscribers: Subscribers, _: Partitions) -> GroupAssignment:
    everything: set[TopicIdPartition] = set()
    for each in subscribers.values():
        everything |= {TopicIdPartition(topic, 0) for topic in each.topics}
    return dict.fromkeys([*subscribers, "b"], frozenset(everything))


def gives_to_a_stranger(_: Subscribers, __: Partitions) -> GroupAssignment:
    return {"stranger": frozenset[TopicIdPartition]()}


def gives_what_nobody_reads(subscribers: Subscribers, _: Partitions) -> GroupAssignment:
    other: Assignment = frozenset({TopicIdPartition(Uuid(b"another topic..."), 0)})
    return dict.fromkeys(subscribers, other)


def gives_nonsense(_: Subscribers, __: Partitions) -> GroupAssignment:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    "fails",
    [
        raises,
        gives_what_is_not_there,
        gives_twice,
        gives_to_a_stranger,
        gives_what_nobody_reads,
        gives_nonsense,
    ],
)
def test_a_join_that_needs_a_failing_assignor_is_refused_and_the_group_stays_unchanged(
    fails: Assignor, caplog: pytest.LogCaptureFixture
) -> None:
    changing = Changing()
    cluster = cluster_with(changing)
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join()
    changing.now = fails
    before = cluster.group
    with caplog.at_level(logging.ERROR), pytest.raises(AssignorFailed) as refused:
        b.join()
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "mine" in str(refused.value)
    assert "mine failed" in caplog.text
    assert cluster.group == before, "nothing has happened"
    assert a.beat().epoch == 2
    changing.now = uniform
    b.join()
    settle(a, b)
    assert (len(a.has), len(b.has)) == (2, 2)


def test_an_unchanged_member_keeps_its_assignment_while_the_assignor_fails() -> None:
    changing = Changing()
    cluster = cluster_with(changing)
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join()
    b.join()
    settle(a, b)
    changing.now = raises
    had = a.has
    b.leave()
    for _ in range(3):
        a.beat()
        cluster.pass_ms(30_000)
    assert a.has == had
    assert set(cluster.group.members) == {"a"}, "its session is renewed"
    changing.now = uniform
    settle(a)
    assert len(a.has) == 4


MODULE = """
from penstock.sdk.assignor import by_range, uniform

def plain(subscribers, partitions):
    return by_range(subscribers, partitions)

class Named:
    name = "by-any-other-name"
    def __call__(self, subscribers, partitions):
        return uniform(subscribers, partitions)

class NeedsMore:
    def __init__(self, more):
        pass

NUMBER = 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"assignors_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_functions_and_classes_are_imported_by_their_paths(module: str) -> None:
    found = assignors((f"{module}:plain", "range", f"{module}:Named"))
    assert list(found.by_name) == ["plain", "range", "by-any-other-name"]
    assert found.default == "plain"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("{}:missing", "missing"),
        ("{}:NeedsMore", "TypeError"),
        ("{}:NUMBER", "neither a function nor a class"),
        ("{}:", "cannot be imported"),
        ("no.such.module:thing", "ModuleNotFoundError"),
        ("org.apache.kafka.Uniform", "is not among"),
    ],
)
def test_an_error_at_startup_names_a_wrong_import_path(module: str, path: str, words: str) -> None:
    wanted = path.format(module)
    with pytest.raises(ConfigError) as refused:
        assignors(("uniform", wanted))
    assert "group.consumer.assignors" in str(refused.value)
    assert wanted in str(refused.value)
    assert words in str(refused.value)


def test_two_assignors_cannot_have_one_name(module: str) -> None:
    with pytest.raises(ConfigError, match="called plain already"):
        assignors((f"{module}:plain", f"{module}:plain"))
