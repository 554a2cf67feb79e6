"""Visible records among batches of several producers, with and without transactions."""

import pytest

from penstock.client.isolation import visible
from penstock.record.batch import CorruptBatch
from penstock.record.build import build_batch
from penstock.record.control import build_marker
from penstock.record.record import Record
from penstock.wire.messages.fetch import AbortedTransaction

LIMIT = 1 << 20


def batch(offset: int, value: bytes, producer: int = -1, *, transactional: bool = True) -> bytes:
    made = build_batch(
        [Record(offset, 0, None, value, [])],
        base_offset=offset,
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=-1 if producer < 0 else 0,
        transactional=transactional and producer >= 0,
    )
    return bytes(made)


def marker(offset: int, producer: int, *, committed: bool) -> bytes:
    made = build_marker(
        producer_id=producer,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=0,
        base_offset=offset,
    )
    return bytes(made)


LOG = [
    batch(0, b"plain"),
    batch(1, b"1 aborted", 1),
    batch(2, b"2 committed", 2),
    batch(3, b"1 aborted too", 1),
    marker(4, 1, committed=False),
    batch(5, b"1 committed", 1),
    marker(6, 2, committed=True),
    marker(7, 1, committed=True),
    batch(8, b"2 aborted", 2),
    batch(9, b"2 outside of transactions", 2, transactional=False),
    marker(10, 2, committed=False),
    batch(11, b"2 later", 2),
]
ABORTED = [
    AbortedTransaction(producer_id=2, first_offset=8),
    AbortedTransaction(producer_id=1, first_offset=1),
]


def values(log: list[bytes], aborted: list[AbortedTransaction] | None) -> list[bytes | None]:
    found = visible(b"".join(log), aborted, LIMIT)
    return [record.value for _, records in found for record in records]


def test_records_of_aborted_transactions_are_hidden() -> None:
    assert values(LOG, ABORTED) == [
        b"plain",
        b"2 committed",
        b"1 committed",
        b"2 outside of transactions",
        b"2 later",
    ]


def test_read_uncommitted_sees_every_record_but_the_markers() -> None:
    assert len(values(LOG, None)) == 8


def test_a_fetch_may_begin_in_the_middle_of_an_aborted_transaction() -> None:
    assert values(LOG[3:6], ABORTED[1:]) == [b"1 committed"]


def test_batches_without_visible_records_still_advance_the_position() -> None:
    headers = [header for header, _ in visible(b"".join(LOG), ABORTED, LIMIT)]
    assert [header.next_offset for header in headers] == list(range(1, 13))


def test_a_truncated_last_batch_is_left_for_the_next_fetch() -> None:
    assert values([LOG[0], LOG[1][:-1]], None) == [b"plain"]


def test_a_corrupt_byte_is_detected() -> None:
    changed = bytearray(LOG[0])
    changed[-2] ^= 1
    with pytest.raises(CorruptBatch, match="offset 0"):
        list(visible(changed, None, LIMIT))
