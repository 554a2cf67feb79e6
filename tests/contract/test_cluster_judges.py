"""Faults again, with clients of other authors as witnesses beside the load: Kafka's
VerifiableProducer and VerifiableConsumer, and franz-go. Their groups commit all the time, and no
committed offset goes back.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from faults.catalog import COORDINATORS, DISKS, LINKS, PROCESSES, SESSIONS, Fault
from faults.checker import violations
from faults.history import History
from faults.links import unusable
from faults.load import PARTITIONS, QUIET, read_all
from faults.scenario import survives
from faults.stage import QUICK_GROUPS, SETTINGS, Stage, penstock_stage
from faults.witness import FRANZ, KAFKA, KAFKA_NEXT, Kind, Witness
from peers.penstock import PenstockBroker
from peers.process import free_ports

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

FAULTS = PROCESSES | COORDINATORS | SESSIONS | DISKS | LINKS
QUICK = {(FRANZ.name, "coordinator killed"), (KAFKA.name, "controller killed")}
"""Cases that `make test` runs; `make soak` runs the others."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with penstock_stage({**SETTINGS, **QUICK_GROUPS}) as made:
        yield made


def witnessed() -> list[object]:
    return [
        pytest.param(
            name,
            kind,
            id=f"{name}, {kind.name}",
            marks=[] if (kind.name, name) in QUICK else [pytest.mark.soak],
        )
        for name in FAULTS
        for kind in (FRANZ, KAFKA, KAFKA_NEXT)
        if kind is not KAFKA_NEXT or name in COORDINATORS
    ]


@pytest.mark.parametrize(("name", "kind"), witnessed())
def test_other_clients_see_the_same_promises_kept(stage: Stage, name: str, kind: Kind) -> None:
    if name in LINKS and (reason := unusable()) is not None:
        pytest.skip(reason)
    fault: Fault = FAULTS[name]
    survives(stage, fault, kind)


@pytest.mark.soak  # sometimes the members commit again before the lost commits are noticed
def test_a_broker_that_loses_commits_is_detected(tmp_path: Path) -> None:
    """Simulates a broker that answered commits before they were durable: the checker must report
    it.
    """
    (port,) = free_ports(1)
    quick = ("--set", "group.initial.rebalance.delay.ms=0")
    with PenstockBroker("--port", str(port), *quick, folder=tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(10)
        with Witness(FRANZ, broker.bootstrap, "t") as witness:
            witness.wait_for_acks(200)
            broker.kill(0)
            for log in broker.directory.rglob("__consumer_offsets-*/*.log"):
                data = log.read_bytes()
                log.write_bytes(data[: len(data) // 2])
            broker.start(0)
            witness.stop_writing()
            history = History(final=read_all(broker.bootstrap, "t"))
            witness.wait_until_drained(history.final)
            witness.tell(history)
    assert "commit-back" in {each.kind for each in violations(history)}
