"""Finds the invalid records of a rejected batch, and what to send instead.

A broker rejects a batch as a whole. If it names records (KIP-467), the others are sent again; if
not, the batch is halved until the invalid record is alone. A batch that is too large is not handled
here: the producer itself makes smaller ones.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from penstock.errors import ErrorCode
from penstock.wire.messages.produce import PartitionProduceResponse

TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
RECORD_FAULTS: Final = TOO_LARGE | {ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP}
"""Codes about records. Others are about the partition, the broker or the client."""


def is_records_fault(code: int, *, was_corrupt: bool) -> bool:
    """Whether the records are at fault; corruption counts only when it was reported twice.

    The first time the batch may have been damaged in transit.
    """
    return code in RECORD_FAULTS or (code == ErrorCode.CORRUPT_MESSAGE and was_corrupt)


class Blame(NamedTuple):
    """Invalid records by index in the batch, with the broker's messages; what to send again."""

    refused: Mapping[int, str | None]
    again: Sequence[Sequence[int]]


def blame(count: int, response: PartitionProduceResponse) -> Blame:
    """What to do with the `count` records of a rejected batch."""
    refused = {
        each.batch_index: each.batch_index_error_message
        for each in response.record_errors
        if 0 <= each.batch_index < count
    }
    if not refused and count > 1:
        return Blame({}, [range(count // 2), range(count // 2, count)])
    if count == 1:
        refused = {0: refused.get(0) or response.error_message}
    rest = [index for index in range(count) if index not in refused]
    return Blame(refused, [rest] if rest else [])
