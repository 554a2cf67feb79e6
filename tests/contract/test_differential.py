"""The same requests to the real Kafka 4.3 and to Penstock: the answers are equal, field by field.

The cases are in `tests/differential/cases`; what may differ is in `rules.py`, and what Penstock
means to do otherwise in `expected.py`. `PENSTOCK_COMPARED=kafka` compares Kafka with itself.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from differential.brokers import SUBJECT, SUBJECTS, kafka
from differential.case import Case, highest
from differential.expected import Difference, unexpected
from differential.flat import difference
from differential.subject import Subject
from differential.table import CASES
from penstock.wire.apis import APIS

SERVED = ["ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "InitProducerId", "OffsetForLeaderEpoch", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords", "DescribeConfigs", "IncrementalAlterConfigs", "AlterConfigs", "DescribeCluster", "DescribeTopicPartitions", "DescribeLogDirs", "AlterReplicaLogDirs", "DescribeProducers", "ListConfigResources", "ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments"]

RUNS = [(case, version) for case in CASES for version in case.versions]


@pytest.fixture(scope="module")
def reference() -> Iterator[Subject]:
    with kafka() as subject:
        yield subject


@pytest.fixture(scope="module")
def compared() -> Iterator[Subject]:
    with SUBJECTS[SUBJECT]() as subject:
        yield subject


@pytest.mark.peer
@pytest.mark.parametrize(
    ("case", "version"), RUNS, ids=[f"{case.name} v{version}" for case, version in RUNS]
)
def test_the_answers_are_those_of_kafka(
    reference: Subject, compared: Subject, case: Case, version: int
) -> None:
    found: list[Difference] = []
    pairs = zip(reference.play(case, version), compared.play(case, version), strict=True)
    for number, (left, right) in enumerate(pairs, 1):
        where = f"request {number}: " if len(case.requests) > 1 else ""
        found += [(where + path, a, b) for path, a, b in difference(left, right)]
    told = [f"{path}: kafka={a}, {SUBJECT}={b}" for path, a, b in unexpected(case.name, found)]
    assert not told, "\n".join(["", *told])


def test_every_served_api_is_compared_at_its_lowest_a_middle_and_its_highest_version() -> None:
    tested = {(case.api.name, version) for case, version in RUNS}
    for api in APIS.values():
        if api.name in SERVED:
            spread = {api.low, (api.low + highest(api)) // 2, highest(api)}
            assert {(api.name, version) for version in spread} <= tested, api.name


def test_case_names_are_unique_because_topics_are_named_after_them() -> None:
    prefixes = Counter(case.prefix(version) for case, version in RUNS)
    assert [prefix for prefix, count in prefixes.items() if count > 1] == []
