"""The same faults on Apache Kafka 3.9 in ZooKeeper mode: the tests demand no more than Kafka gives.

Left out: faults that cut links, since Kafka's brokers do not connect from addresses of their own,
and the bit flip after a crash of all brokers, where Kafka may lose records (docs/reliability.md).
"""

from collections.abc import Iterator

import pytest

from faults.catalog import DISKS, PROCESSES, SESSIONS, Fault
from faults.scenario import survives
from faults.stage import Stage
from peers.kafka import KafkaCluster
from peers.zookeeper import ZooKeeper

pytestmark = [pytest.mark.peer, pytest.mark.soak, pytest.mark.timeout(300)]

SETTINGS = {
    "replica.lag.time.max.ms": 2000,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 3000,
    "log.roll.ms": 3000,
}
LEFT_OUT = {
    "leader's session expired",  # Kafka keeps the session's password in memory only
    "controller's session expired",
    "all killed, bit flip",
}
FAULTS = {
    name: fault for name, fault in (PROCESSES | SESSIONS | DISKS).items() if name not in LEFT_OUT
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        KafkaCluster(3, zookeeper=zookeeper.connect, settings=SETTINGS) as brokers,
    ):
        yield Stage(zookeeper, brokers)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_acknowledged_records_survive_in_kafka(stage: Stage, fault: Fault) -> None:
    survives(stage, fault)
