"""The exactly-once sink when driver, executor, broker or coordinator is killed at each step of an
epoch: every row is there once, in order. test_spark_exactly_once tests Spark itself.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.penstock_cluster import PenstockCluster
from peers.process import free_ports, last_lines, tied_to_us, wait_until
from peers.zookeeper import ZooKeeper
from penstock.client.address import parse_addresses
from penstock.client.route import KeyType, ToCoordinator, ToLeader
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.types import TopicPartition
from support.spark.epoch_driver import (
    DRIVER_STEPS,
    EPOCHS,
    PARTITIONS,
    ROWS,
    SERVERS,
    STEPS,
    TASK_STEPS,
)
from support.spark.spark_query import ENVIRONMENT
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
STARTS = 12
WAIT_S = 600
"""For all starts of the driver together; on an idle machine they take a few seconds."""
CASES = [
    *((step, "driver") for step in STEPS),
    *((step, "executor") for step in TASK_STEPS),
    *((step, server) for server in SERVERS for step in STEPS),
]
QUICK = [
    ("commit.ended", "driver"),
    ("task.heard", "executor"),
    ("open.initialised", "broker"),
    ("commit.marked", "coordinator"),
]
Restart = Callable[[str], None]


@contextmanager
def one_broker(folder: Path) -> Iterator[tuple[str, Restart]]:
    """One broker that leads and coordinates everything."""
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=folder / "broker") as broker:

        def restart(_server: str) -> None:
            broker.kill(0)
            broker.start(0)

        make_topic(broker.bootstrap, 1)
        yield broker.bootstrap, restart


@contextmanager
def three_brokers(folder: Path) -> Iterator[tuple[str, Restart]]:
    with (
        ZooKeeper(folder=folder / "zookeeper") as zookeeper,
        PenstockCluster(zookeeper.connect, 3, folder=folder / "brokers") as cluster,
    ):
        make_topic(cluster.bootstrap, 3)

        def restart(server: str) -> None:
            with BlockingClient(
                ClientSettings(tuple(parse_addresses(cluster.bootstrap)))
            ) as client:
                wanted = (
                    ToLeader(TopicPartition("out", 0))
                    if server == "broker"
                    else ToCoordinator("copy", KeyType.TRANSACTION)
                )
                address = client.retrying(partial(client.connection, wanted)).address
            number = cluster.addresses.index(f"{address.host}:{address.port}")
            cluster.kill(number)
            cluster.start(number)

        yield cluster.bootstrap, restart


def make_topic(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("out", PARTITIONS, replicas)])["out"].result(120)


def copy(bootstrap: str, folder: Path, step: str, victim: str, restart: Restart) -> None:
    """Starts the driver again and again until it is done. Driver and tasks share a session of their
    own.
    """
    deadline = time.monotonic() + WAIT_S
    reported = folder / "driver"
    reported.mkdir()
    command = [
        sys.executable,
        "-m",
        "support.spark.epoch_driver",
        bootstrap,
        str(reported),
        step,
        victim,
    ]

    def ended(driver: subprocess.Popen[bytes]) -> bool:
        for server in SERVERS:
            asked = reported / f"kill-{server}"
            if asked.exists():
                restart(server)
                asked.unlink()
        return driver.poll() is not None

    sessions = []
    output = folder / "output"
    try:
        for _ in range(STARTS):
            with output.open("ab") as out:
                driver = subprocess.Popen(
                    [*tied_to_us(), *command],
                    stdout=out,
                    stderr=out,
                    env=os.environ | ENVIRONMENT,
                    start_new_session=True,
                )
            sessions.append(driver.pid)
            try:
                wait_until(partial(ended, driver), deadline - time.monotonic(), "the driver to end")
            except TimeoutError as late:
                raise AssertionError(f"{late}\n{last_lines(output)}") from late
            if driver.returncode == 0:
                return
    finally:
        for each in sessions:
            with suppress(ProcessLookupError):
                os.killpg(each, signal.SIGKILL)
    raise AssertionError(f"the driver failed too often\n{last_lines(output)}")


def check(cluster: Callable[[Path], object], folder: Path, step: str, victim: str) -> None:
    with cluster(folder) as (bootstrap, restart):  # type: ignore[attr-defined]
        copy(bootstrap, folder, step, victim, restart)
        found = committed(bootstrap, "out", PARTITIONS)
    assert (folder / "driver" / "happened").exists(), "nothing was killed"
    for partition, values in enumerate(found):
        expected = [each for each in range(EPOCHS * ROWS) if each % PARTITIONS == partition]
        assert [int(each) for each in values] == expected


def test_all_steps_and_victims_are_tested() -> None:
    assert set(QUICK) < set(CASES)
    assert len(CASES) == 3 * len(STEPS) + len(TASK_STEPS)
    assert {victim for _, victim in QUICK} == {victim for _, victim in CASES}
    assert set(STEPS) == {*DRIVER_STEPS, *TASK_STEPS}


@pytest.mark.parametrize(("step", "victim"), QUICK)
def test_every_row_is_there_once_after_a_kill(tmp_path: Path, step: str, victim: str) -> None:
    check(one_broker, tmp_path, step, victim)


@pytest.mark.soak
@pytest.mark.parametrize("cluster", [one_broker, three_brokers])
@pytest.mark.parametrize(("step", "victim"), CASES)
def test_every_row_is_there_once_for_every_step_and_victim(
    tmp_path: Path, step: str, victim: str, cluster: Callable[[Path], object]
) -> None:
    check(cluster, tmp_path, step, victim)
