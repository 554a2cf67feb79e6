"""Faults under load on three brokers with RF 3, min ISR 2 and acks=all: no acknowledged record is
lost or duplicated, no transaction is torn, and the replicas are byte-identical afterwards.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults import small_disk
from faults.catalog import (
    DISKS,
    LINKS,
    PROCESSES,
    SESSIONS,
    Fault,
    at_random,
    zookeeper_leader_killed,
)
from faults.links import unusable
from faults.load import Load
from faults.scenario import survives
from faults.stage import SETTINGS, Stage, penstock_stage
from peers.penstock_cluster import PenstockCluster
from peers.zookeeper import ZooKeeper

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

QUICK = {
    "leader killed",
    "controller terminated",
    "leader paused",
    "leader's session expired",
    "ZooKeeper restarted",
    "leader cut off",
    "nobody hears the leader",
    "bit flip",
    "flipped epoch",
}
"""Faults that `make test` runs; `make soak` runs the others."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with penstock_stage(SETTINGS) as made:
        yield made


def named(faults: dict[str, Fault]) -> list[object]:
    return [
        pytest.param(fault, id=name, marks=[] if name in QUICK else [pytest.mark.soak])
        for name, fault in faults.items()
    ]


@pytest.mark.row("A156", "A159")
@pytest.mark.parametrize("fault", named({**PROCESSES, **SESSIONS, **DISKS}))
def test_acknowledged_records_survive(stage: Stage, fault: Fault) -> None:
    survives(stage, fault)


@pytest.mark.parametrize("fault", named(LINKS))
def test_acknowledged_records_survive_cut_links(stage: Stage, fault: Fault) -> None:
    if (reason := unusable()) is not None:
        pytest.skip(reason)
    survives(stage, fault)


@pytest.mark.soak
def test_a_full_disk_costs_one_replica_and_no_record(tmp_path: Path) -> None:
    if (reason := small_disk.unusable()) is not None:
        pytest.skip(reason)
    victim = 2

    def filled(stage: Stage, load: Load) -> None:
        with small_disk.full(disk):
            stage.wait_until_led_elsewhere(victim)
            load.wait_for_acks(300)
            stage.brokers.kill(victim)
        stage.brokers.start(victim)

    with ZooKeeper(settings={"tickTime": 500}) as zookeeper:
        brokers = PenstockCluster(zookeeper.connect, settings=SETTINGS, folder=tmp_path)
        disk = brokers.directory(victim)
        with small_disk.small_disk(disk), brokers:
            survives(Stage(zookeeper, brokers), filled)


@pytest.mark.row("A083")
@pytest.mark.soak
def test_records_survive_the_loss_of_a_zookeeper_server() -> None:
    with (
        ZooKeeper(3, settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, settings=SETTINGS) as brokers,
    ):
        survives(Stage(zookeeper, brokers), zookeeper_leader_killed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_acknowledged_records_survive_random_faults(stage: Stage, seed: int) -> None:
    survives(stage, at_random(seed, rounds=8))
