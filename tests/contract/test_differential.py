"""The same requests to the real Kafka 4.3 and to Penstock: the responses are equal, field by field.

The cases are in `tests/differential/cases`. `rules.py` says which fields may differ, and
`expected.py` which differences Penstock intends. `PENSTOCK_COMPARED=kafka` compares Kafka with
itself.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from differential.brokers import SUBJECT, SUBJECTS, kafka
from differential.case import Case, highest
from differential.expected import Expectations
from differential.flat import Difference, difference
from differential.subject import Subject
from differential.table import CASES
from penstock.wire.apis import APIS

SERVED = {
    *range(4), *range(8, 17), *range(18, 29), *range(32, 36), 37, *range(42, 50),
    57, 60, 61, 65, 66, 68, 69, *range(74, 80), *range(88, 93),
}  # fmt: skip
"""Keys of the APIs that Penstock serves."""

RUNS = [(case, version) for case in CASES for version in case.versions]


@pytest.fixture(scope="module")
def reference() -> Iterator[Subject]:
    with kafka() as subject:
        yield subject


@pytest.fixture(scope="module")
def compared() -> Iterator[Subject]:
    with SUBJECTS[SUBJECT]() as subject:
        yield subject


@pytest.fixture(scope="module")
def expectations() -> Iterator[Expectations]:
    expectations = Expectations()
    yield expectations
    if SUBJECT == "penstock" and expectations.cases_seen == len(RUNS):
        assert expectations.needless == [], "they no longer differ: strike them from the table"


@pytest.mark.peer
@pytest.mark.parametrize(
    ("case", "version"), RUNS, ids=[f"{case.name} v{version}" for case, version in RUNS]
)
def test_responses_equal_those_of_kafka(
    reference: Subject, compared: Subject, expectations: Expectations, case: Case, version: int
) -> None:
    found: list[Difference] = []
    pairs = zip(reference.play(case, version), compared.play(case, version), strict=True)
    for number, (left, right) in enumerate(pairs, 1):
        found += [
            (f"request {number}: {path}", there, here)
            for path, there, here in difference(left, right)
        ]
    reported = [
        f"{path}: kafka={there}, {SUBJECT}={here}"
        for path, there, here in expectations.unexpected(case.name, found)
    ]
    assert not reported, "\n".join(["", *reported])


def test_every_served_api_is_compared_at_its_lowest_a_middle_and_its_highest_version() -> None:
    tested = {(case.api.name, version) for case, version in RUNS}
    for api in APIS.values():
        if api.key in SERVED:
            spread = {api.low, (api.low + highest(api)) // 2, highest(api)}
            assert {(api.name, version) for version in spread} <= tested, api.name


def test_case_names_are_unique_because_topics_are_named_after_them() -> None:
    prefixes = Counter(case.prefix(version) for case, version in RUNS)
    assert [prefix for prefix, count in prefixes.items() if count > 1] == []
