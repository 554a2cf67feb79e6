"""Faults again, with witnesses by other hands beside the load: Kafka's VerifiableProducer and
VerifiableConsumer, and franz-go. Their groups commit all the while, and no offset goes back.
"""

from collections.abc import Iterator

import pytest

from faults.catalog import COORDINATORS, DISKS, LINKS, PROCESSES, SESSIONS, Fault
from faults.links import unusable
from faults.scenario import survives
from faults.stage import Stage
from faults.witness import FRANZ, KAFKA, Kind
from peers.penstock_cluster import PenstockCluster
from peers.zookeeper import ZooKeeper

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

SETTINGS = {
    "zookeeper.session.timeout.ms": 2000,
    "replica.lag.time.max.ms": 2000,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 3000,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "log.roll.ms": 3000,
}
FAULTS = PROCESSES | COORDINATORS | SESSIONS | DISKS | LINKS
QUICK = {(FRANZ.name, "coordinator killed"), (KAFKA.name, "controller killed")}
"""The others are in `make soak`."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, settings=SETTINGS, apart=True) as brokers,
    ):
        yield Stage(zookeeper, brokers)


def witnessed() -> list[object]:
    return [
        pytest.param(
            name,
            kind,
            id=f"{name}, {kind.name}",
            marks=[] if (kind.name, name) in QUICK else [pytest.mark.soak],
        )
        for name in FAULTS
        for kind in (FRANZ, KAFKA)
    ]


@pytest.mark.parametrize(("name", "kind"), witnessed())
def test_other_clients_find_what_they_were_promised(stage: Stage, name: str, kind: Kind) -> None:
    if name in LINKS and (reason := unusable()) is not None:
        pytest.skip(reason)
    fault: Fault = FAULTS[name]
    survives(stage, fault, kind)
