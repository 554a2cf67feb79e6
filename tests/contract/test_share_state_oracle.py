"""The share coordinator compared with Kafka's: the same requests, equal responses."""

from collections.abc import Iterator

import pytest

from clients.brokers import rare_unless
from differential.brokers import SETTINGS, kafka
from differential.case import Case
from differential.cases.share_state import CASES
from differential.expected import Expected
from differential.flat import difference
from differential.subject import Subject
from peers.penstock_cluster import PenstockCluster
from peers.zookeeper import ZooKeeper

pytestmark = [pytest.mark.peer, *rare_unless("PENSTOCK_ORACLE")]
RUNS = [(case, version) for case in CASES for version in case.versions]

KNOWN = "our group coordinator begins with partitions that it knows to be there"
NONE_YET = "-1 while no leader has read the state, and no start where there is no state"
UNKNOWN = "a member is told of such a partition what it is told of one that is not there"
DELETED = "topics that are deleted leave their state behind: that is deleted and looked at too"
DIFFERS = (
    Expected("*ShareGroupState*: *", "*error_message", "says which share-partition it is"),
    Expected("InitializeShareGroupState: a * that is not there", "*error_code", KNOWN),
    Expected("InitializeShareGroupState: a negative partition", "*error_code", KNOWN),
    Expected("*ShareGroupState*: *", "*leader_epoch", NONE_YET),
    Expected("ReadShareGroupStateSummary: *", "*start_offset", NONE_YET),
    Expected("ReadShareGroupState: *", "*error_code", UNKNOWN),
    Expected("DeleteShareGroupState: what was begun", "request 7*error_code", UNKNOWN),
    Expected("WriteShareGroupState: what nobody began", "*error_code", UNKNOWN),
    Expected("WriteShareGroupState: a topic that is not there", "*error_code", UNKNOWN),
    Expected("DeleteShareGroupState: a topic that is not there", "*error_code", DELETED),
    Expected("ReadShareGroupStateSummary: a topic that is not there", "*error_code", DELETED),
    Expected("WriteShareGroupState: with a newer state", "*error_code", "there never was one"),
    Expected(
        "WriteShareGroupState: with an older leader",
        "*error_code",
        "a former leader cannot write over a newer one; Kafka fences it when that one has read",
    ),
)
"""Requests that only brokers of the same cluster send to each other."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Subject]:
    with kafka() as subject:
        yield subject


@pytest.fixture(scope="module")
def compared() -> Iterator[Subject]:
    """A cluster of one broker: a standalone broker serves no requests of other brokers."""
    with (
        ZooKeeper() as zookeeper,
        PenstockCluster(zookeeper.connect, 1, settings=SETTINGS) as cluster,
    ):
        yield Subject(int(cluster.bootstrap.rpartition(":")[2]))


@pytest.fixture(scope="module")
def needed() -> Iterator[set[Expected]]:
    """The expected differences that really occurred."""
    found: set[Expected] = set()
    cases: set[Expected] = set(DIFFERS)
    yield found
    if len(RAN) == len(RUNS):
        assert cases - found == set(), "they no longer differ: strike them from the table"


RAN: set[tuple[str, int]] = set()


@pytest.mark.parametrize(
    ("case", "version"), RUNS, ids=[f"{case.name} v{version}" for case, version in RUNS]
)
def test_the_state_responses_equal_those_of_kafka(
    reference: Subject, compared: Subject, needed: set[Expected], case: Case, version: int
) -> None:
    reported = []
    pairs = zip(reference.play(case, version), compared.play(case, version), strict=True)
    for number, (left, right) in enumerate(pairs, 1):
        for path, there, here in difference(left, right):
            at = f"request {number}: {path}"
            reasons = {each for each in DIFFERS if each.covers(case.name, at, there)}
            needed |= reasons
            if not reasons:
                reported.append(f"{at}: kafka={there}, penstock={here}")
    RAN.add((case.name, version))
    assert not reported, "\n".join(["", *reported])
