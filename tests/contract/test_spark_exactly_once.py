"""The exactly-once sink under faults: each row is there once, whatever is killed at any time.

A job in a separate process writes files of ids to a topic, one epoch per file. The test compares
what another client reads at the end.
"""

import os
import random
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import free_ports
from peers.spark import SparkCluster
from support.spark.spark_faults import ACTIONS, POINTS, Fault, Folder
from support.spark.spark_query import PYTHON_PATH, run, write_input
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
PARTITIONS = 4
LOCAL = "local[2,4]"


def make_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("out", PARTITIONS)])["out"].result(30)


def ids(found: list[list[str]]) -> list[list[int]]:
    return [[int(value.split(" ")[0]) for value in partition] for partition in found]


def check_exact(found: list[list[int]], expected: set[int]) -> None:
    """Every id is there once, in its partition, in order."""
    for partition, values in enumerate(found):
        assert values == sorted(each for each in expected if each % PARTITIONS == partition)


def check_on_penstock(folder: Path, faults: list[Fault], *options: str, epochs: int = 3) -> str:
    """Runs the job with the faults, all of which must happen; returns what its failed
    queries said.
    """
    expected = write_input(folder, epochs=epochs, rows=400, partitions=PARTITIONS)
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=folder / "broker") as broker:
        make_topic(broker.bootstrap)

        def restart() -> None:
            broker.kill(0)
            broker.start(0)

        run(LOCAL, broker.bootstrap, folder, faults, *options, restart_broker=restart)
        found = ids(committed(broker.bootstrap, "out", PARTITIONS))
    check_exact(found, expected)
    assert Folder(folder / "faults").happened() == set(faults)
    failures = folder / "failures"
    return failures.read_text() if failures.exists() else ""


def test_tasks_continue_after_they_or_the_broker_die(tmp_path: Path) -> None:
    faults = [
        Fault("task.begin", 1, "fail"),
        Fault("task.heard", 5, "fail"),
        Fault("task.part", 25, "kill"),
        Fault("task.heard", 20, "kill"),
        Fault("task.sent", 5, "fail"),
        Fault("task.sent", 9, "kill"),
        Fault("task.heard", 35, "broker"),
        Fault("commit.begin", 1, "broker"),
        Fault("commit.marked", 2, "broker"),
    ]
    assert not check_on_penstock(tmp_path, faults), "the query itself went on"


def test_a_commit_is_complete_although_its_process_or_the_driver_is_killed(tmp_path: Path) -> None:
    faults = [
        Fault("open.begin", 1, "kill"),
        Fault("open.done", 2, "kill"),
        Fault("commit.begin", 1, "kill"),
        Fault("commit.marked", 1, "kill"),
        Fault("commit.ended", 1, "kill"),
        Fault("commit.ended", 2, "fail"),
        Fault("commit.marked", 3, "jvm"),
    ]
    check_on_penstock(tmp_path, faults)


def test_a_retry_with_different_rows_fails_the_query_and_nothing_is_seen_twice(
    tmp_path: Path,
) -> None:
    faults = [Fault("task.heard", 15, "kill")]
    said = check_on_penstock(tmp_path, faults, "repeatable=false", epochs=1)
    assert "of this attempt is not the one that an earlier attempt wrote" in said
    assert "a retried task must see the same rows: leave out functions" in said


def test_rows_are_written_exactly_once_to_kafka(tmp_path: Path) -> None:
    faults = [
        Fault("task.heard", 20, "kill"),
        Fault("task.sent", 5, "fail"),
        Fault("commit.marked", 1, "kill"),
        Fault("commit.ended", 1, "kill"),
        Fault("commit.marked", 3, "jvm"),
    ]
    expected = write_input(tmp_path, epochs=3, rows=400, partitions=PARTITIONS)
    with KafkaCluster(folder=tmp_path / "kafka") as kafka:
        make_topic(kafka.bootstrap)
        run(LOCAL, kafka.bootstrap, tmp_path, faults)
        found = ids(committed(kafka.bootstrap, "out", PARTITIONS))
    check_exact(found, expected)
    assert Folder(tmp_path / "faults").happened() == set(faults)


def test_a_killed_executor_loses_nothing(tmp_path: Path) -> None:
    faults = [Fault("task.heard", 20, "jvm"), Fault("task.sent", 9, "jvm")]
    expected = write_input(tmp_path, epochs=3, rows=400, partitions=PARTITIONS)
    with (
        PenstockBroker(folder=tmp_path / "broker") as broker,
        SparkCluster(2, python_path=PYTHON_PATH, folder=tmp_path / "spark") as spark,
    ):
        make_topic(broker.bootstrap)
        run(spark.master, broker.bootstrap, tmp_path, faults)
        found = ids(committed(broker.bootstrap, "out", PARTITIONS))
    check_exact(found, expected)
    assert Folder(tmp_path / "faults").happened() == set(faults)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20) if "PENSTOCK_SOAK" in os.environ else [0])
def test_random_faults_lose_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    reached = {point: 200 if point in {"task.part", "task.heard"} else 8 for point in POINTS}
    chosen = {(point, dice.randrange(reached[point])) for point in dice.choices(POINTS, k=10)}
    faults = [Fault(*each, dice.choice(ACTIONS)) for each in sorted(chosen)]
    expected = write_input(tmp_path, epochs=8, rows=400, partitions=PARTITIONS)
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=tmp_path / "broker") as broker:
        make_topic(broker.bootstrap)

        def restart() -> None:
            broker.kill(0)
            broker.start(0)

        run(LOCAL, broker.bootstrap, tmp_path, faults, restart_broker=restart, wait_s=500)
        check_exact(ids(committed(broker.bootstrap, "out", PARTITIONS)), expected)
    assert Folder(tmp_path / "faults").happened(), "nothing was tried"
