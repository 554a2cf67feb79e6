"""Faults again, with witnesses by other hands beside the load: Kafka's VerifiableProducer and
VerifiableConsumer, and franz-go. Their groups commit all the while, and no offset goes back.
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
from faults.stage import SETTINGS, Stage, penstock_stage
from faults.witness import FRANZ, KAFKA, KAFKA_NEXT, Kind, Witness
from peers.penstock import PenstockBroker
from peers.process import free_ports

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
}
FAULTS = PROCESSES | COORDINATORS | SESSIONS | DISKS | LINKS
QUICK = {(FRANZ.name, "coordinator killed"), (KAFKA.name, "controller killed")}
"""The others are in `make soak`."""


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
def test_other_clients_judge_the_same_promises(stage: Stage, name: str, kind: Kind) -> None:
    if name in LINKS and (reason := unusable()) is not None:
        pytest.skip(reason)
    fault: Fault = FAULTS[name]
    survives(stage, fault, kind)


@pytest.mark.soak  # now and then members have committed again before anybody looked
def test_a_broker_that_forgets_commits_is_found_out(tmp_path: Path) -> None:
    """As it would if it answered before they were safe: the witness tells, the checker sees."""
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
