"""Partitions are moved between workers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from peers.process import wait_until
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker(workers=2) as broker:
        yield broker.bootstrap


def run(bootstrap: str, *words: str) -> Result:
    """Each call may reach another worker, which learns of a new topic a moment later."""
    results: list[Result] = []

    def is_known() -> bool:
        results[:] = [CliRunner().invoke(main, [*words, "-b", bootstrap])]
        output = results[0].output
        return "no such topic" not in output and "UNKNOWN_TOPIC_OR_PARTITION" not in output

    wait_until(is_known, 20, "the topic")
    assert results[0].exit_code == 0, results[0].output
    return results[0]


def replicas(bootstrap: str, topic: str) -> list[list[int]]:
    described = json.loads(run(bootstrap, "topic", "describe", topic, "--format", "json").stdout)
    return [each["replicas"] for each in described["partitions"]]


def settings(bootstrap: str, topic: str) -> list[str]:
    reported = run(bootstrap, "config", "describe", "topic", topic, "--format", "json").stdout
    return [json.loads(each)["value"] for each in reported.splitlines()]


def test_a_plan_is_saved_executed_and_completed(bootstrap: str, tmp_path: Path) -> None:
    brokers = [
        json.loads(line)["id"]
        for line in run(bootstrap, "broker", "list", "--format", "json").stdout.splitlines()
    ]
    first, second = brokers
    run(bootstrap, "topic", "create", "moved", "--replica-assignment", f"{first},{first}")
    plan = tmp_path / "plan.json"
    words = ("reassign", "plan", "-t", "moved", "--to", str(second), "--save", str(plan))
    assert "2 replicas to copy, 2 partitions to change" in run(bootstrap, *words).stdout
    done = run(bootstrap, "reassign", "run", str(plan))
    assert done.stderr.endswith("done: 2 partitions\n")
    wait_until(lambda: replicas(bootstrap, "moved") == [[second], [second]], 20, "the first move")
    assert "nothing to move" in run(bootstrap, "reassign", "run", str(plan)).stdout

    more = ("reassign", "plan", "-t", "moved", "--replication-factor", "2", "--save", str(plan))
    run(bootstrap, *more)
    own = "leader.replication.throttled.replicas=7:1"
    run(bootstrap, "config", "set", "topic", "moved", own)
    run(bootstrap, "reassign", "run", str(plan), "--throttle", "100000000")
    # The worker that answers learns of it from the controller.
    wait_until(lambda: settings(bootstrap, "moved") == ["7:1"], 20, "the operator's own throttle")
    both = [[second, first], [second, first]]
    wait_until(lambda: replicas(bootstrap, "moved") == both, 20, "the second move")
    assert run(bootstrap, "reassign", "watch").stderr == "no partition is being moved\n"
    run(bootstrap, "topic", "delete", "moved")


def test_a_broker_that_leaves_keeps_no_partitions(bootstrap: str) -> None:
    listed = run(bootstrap, "broker", "list", "--format", "json").stdout.splitlines()
    first, second = (json.loads(line)["id"] for line in listed)
    run(bootstrap, "topic", "create", "kept", "--replica-assignment", f"{first},{second}")
    run(bootstrap, "broker", "decommission", str(first), "--execute")
    moved = [[second], [second]]
    # The worker that answers learns of it from the controller.
    wait_until(lambda: replicas(bootstrap, "kept") == moved, 20, "the partitions to be moved")


@pytest.mark.parametrize(
    "words", [("broker", "decommission"), ("cluster", "rebalance", "--without")]
)
def test_one_of_three_may_leave_although_topics_have_two_replicas(words: tuple[str, ...]) -> None:
    with EmbeddedBroker(workers=3) as broker:
        run(broker.bootstrap, "topic", "create", "d", "-p", "6", "-r", "2")
        listed = run(broker.bootstrap, "broker", "list", "--format", "json").stdout.splitlines()
        first, second, last = (json.loads(line)["id"] for line in listed)
        run(broker.bootstrap, *words, str(last), "--execute")
        assert all(set(each) == {first, second} for each in replicas(broker.bootstrap, "d"))
