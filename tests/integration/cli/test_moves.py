"""Moves of partitions between two brokers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker(workers=2) as broker:
        yield broker.bootstrap


def run(bootstrap: str, *words: str) -> Result:
    result = CliRunner().invoke(main, [*words, "-b", bootstrap])
    assert result.exit_code == 0, result.output
    return result


def replicas(bootstrap: str, topic: str) -> list[list[int]]:
    described = json.loads(run(bootstrap, "topic", "describe", topic, "--format", "json").stdout)
    return [each["replicas"] for each in described["partitions"]]


def test_a_plan_is_saved_run_and_done(bootstrap: str, tmp_path: Path) -> None:
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
    assert replicas(bootstrap, "moved") == [[second], [second]]
    assert "nothing to move" in run(bootstrap, "reassign", "run", str(plan)).stdout

    more = ("reassign", "plan", "-t", "moved", "--replication-factor", "2", "--save", str(plan))
    run(bootstrap, *more)
    run(bootstrap, "reassign", "run", str(plan))
    assert replicas(bootstrap, "moved") == [[second, first], [second, first]]
    assert run(bootstrap, "reassign", "watch").stderr == "no partition is being moved\n"
    run(bootstrap, "topic", "delete", "moved")


def test_a_broker_that_leaves_has_nothing(bootstrap: str) -> None:
    listed = run(bootstrap, "broker", "list", "--format", "json").stdout.splitlines()
    first, second = (json.loads(line)["id"] for line in listed)
    run(bootstrap, "topic", "create", "kept", "--replica-assignment", f"{first},{second}")
    run(bootstrap, "broker", "decommission", str(first), "--execute")
    assert replicas(bootstrap, "kept") == [[second], [second]]
