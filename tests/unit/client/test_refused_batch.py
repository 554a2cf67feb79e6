"""The invalid records of a rejected batch, and which records are sent again."""

from collections.abc import Sequence

import pytest

from penstock.client.refused_batch import Blame, blame, is_records_fault
from penstock.errors import ErrorCode
from penstock.wire.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse


@pytest.mark.parametrize(
    ("count", "named", "expected"),
    [
        (1, (), Blame({0: "all"}, [])),
        (1, (0,), Blame({0: "r0"}, [])),
        (1, (7,), Blame({0: "all"}, [])),
        (2, (), Blame({}, [[0], [1]])),
        (5, (), Blame({}, [[0, 1], [2, 3, 4]])),
        (5, (1, 3), Blame({1: "r1", 3: "r3"}, [[0, 2, 4]])),
        (2, (0, 1), Blame({0: "r0", 1: "r1"}, [])),
        (3, (-1, 3), Blame({}, [[0], [1, 2]])),
        (3, (2, 9), Blame({2: "r2"}, [[0, 1]])),
    ],
)
def test_named_records_are_rejected_and_a_batch_without_names_is_halved(
    count: int, named: Sequence[int], expected: Blame
) -> None:
    answer = PartitionProduceResponse(
        error_message="all",
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=each, batch_index_error_message=f"r{each}")
            for each in named
        ],
    )
    refused, again = blame(count, answer)
    assert (refused, [list(part) for part in again]) == expected


def test_corruption_is_blamed_on_the_records_only_when_reported_twice() -> None:
    assert not is_records_fault(ErrorCode.CORRUPT_MESSAGE, was_corrupt=False)
    assert is_records_fault(ErrorCode.CORRUPT_MESSAGE, was_corrupt=True)
    assert is_records_fault(ErrorCode.MESSAGE_TOO_LARGE, was_corrupt=False)
    assert not is_records_fault(ErrorCode.NOT_LEADER_OR_FOLLOWER, was_corrupt=True)
