"""On two brokers: old kafka-acls.sh command lines that name ZooKeeper, and replica verification."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.zookeeper import ZooKeeper
from support.commands.kafka_tool import call_tool

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LINES = "".join(f"line {number}\n" for number in range(500))


@pytest.mark.peer
@pytest.mark.timeout(120)
def test_old_acl_commands_work_by_zookeeper_address_and_replicas_are_compared(
    tmp_path: Path,
) -> None:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, 2, settings=SETTINGS, folder=tmp_path) as cluster,
    ):
        at = ("--bootstrap-server", cluster.bootstrap)
        old = ("--authorizer-properties", f"zookeeper.connect={zookeeper.connect}")
        rule = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", "t")
        assert call_tool("kafka-acls.sh", *old, "--add", *rule).code == 0
        listed = "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)"
        # The broker that answers may learn of the ACL a moment later.
        wait_until(
            lambda: listed in call_tool("kafka-acls.sh", *at, "--list").out, 20, "the new rule"
        )
        made = ("--create", "--topic", "t", "--partitions", "2", "--replication-factor", "2")
        assert call_tool("kafka-topics.sh", *at, *made).code == 0
        call_tool("kafka-console-producer.sh", *at, "--topic", "t", stdin=LINES)
        words = ["--broker-list", cluster.bootstrap, "--topics-include", "t", "--time", "-2"]
        words += ["--report-interval-ms", "1", "--max-wait-ms", "10"]
        script = "kafka-replica-verification.sh"
        with subprocess.Popen(
            [sys.executable, "-m", "penstock.kafka_tools", script, *words],
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            try:
                reported = [line.partition(": ")[2] for line in until_without_lag(running.stdout)]
            finally:
                running.terminate()
    assert reported[0] == "verification process is started\n"
    assert reported[-1].startswith("max lag is 0 for partition t-"), reported
    assert not [each for each in reported if "match" in each]


def until_without_lag(lines: Iterable[str]) -> Iterator[str]:
    """The lines up to the first without lag: a replica may lag at first."""
    for line in islice(lines, 1000):
        yield line
        if "max lag is 0" in line:
            return
