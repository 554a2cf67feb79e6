"""Which records of a batch that a broker refused are to blame, and what to send instead.

A broker refuses a batch as a whole. Where it names records (KIP-467), the others are sent again;
where it does not, the batch is cut in two, until the record to blame is alone.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from penstock.errors import ErrorCode
from penstock.wire.messages.produce import PartitionProduceResponse

RECORD_FAULTS: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)
"""What a broker says of records. Other codes are about the partition, the broker or who asks."""


def is_records_fault(code: int, *, was_corrupt: bool) -> bool:
    """Whether records are to blame; for damage they are if it was found before as well.

    The first time it may have happened on the way.
    """
    return code in RECORD_FAULTS or (code == ErrorCode.CORRUPT_MESSAGE and was_corrupt)


class Blame(NamedTuple):
    """Records to blame by their index in the batch, with the broker's words; ranges to send."""

    refused: Mapping[int, str | None]
    again: Sequence[Sequence[int]]


def blame(count: int, answer: PartitionProduceResponse) -> Blame:
    """What becomes of the `count` records of a refused batch."""
    refused = {
        each.batch_index: each.batch_index_error_message
        for each in answer.record_errors
        if 0 <= each.batch_index < count
    }
    if not refused and count > 1:
        return Blame({}, [range(count // 2), range(count // 2, count)])
    if count == 1:
        refused = {0: refused.get(0) or answer.error_message}
    rest = [index for index in range(count) if index not in refused]
    return Blame(refused, [rest] if rest else [])
