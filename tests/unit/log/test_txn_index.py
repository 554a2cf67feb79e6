"""The index of aborted transactions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.corrupt import CorruptFile
from penstock.log.txn_index import (
    ENTRY_BYTES,
    AbortedTxn,
    decode_aborted,
    encode_aborted,
    kept_bytes,
    overlapping,
)

TXNS = [AbortedTxn(7, 0, 10, 11), AbortedTxn(8, 5, 20, 15), AbortedTxn(9, 15, 30, 31)]
DATA = b"".join(map(encode_aborted, TXNS))


def test_an_entry_is_34_bytes_with_a_version() -> None:
    assert ENTRY_BYTES == 34
    assert encode_aborted(AbortedTxn(1, 2, 3, 4)) == bytes.fromhex(
        "0000" + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004"
    )
    assert decode_aborted(DATA, 0, "it") == TXNS


@pytest.mark.parametrize(
    ("data", "base_offset"),
    [
        (DATA[:-1], 0),
        (b"\0\1" + DATA[2:], 0),
        (DATA, 11),
        (encode_aborted(TXNS[1]) + encode_aborted(TXNS[0]), 0),
        (encode_aborted(AbortedTxn(1, 9, 8, 10)), 0),
    ],
)
def test_an_impossible_entry_is_refused(data: bytes, base_offset: int) -> None:
    with pytest.raises(CorruptFile):
        decode_aborted(data, base_offset, "it")


def test_truncation_keeps_transactions_that_ended_before_the_offset() -> None:
    assert kept_bytes(DATA, 0, 31, "it") == 3 * ENTRY_BYTES
    assert kept_bytes(DATA, 0, 30, "it") == 2 * ENTRY_BYTES
    assert kept_bytes(DATA, 0, 0, "it") == 0


def test_a_search_returns_overlapping_transactions_and_when_to_stop() -> None:
    assert overlapping(TXNS, 0, 3) == ([TXNS[0]], True)
    assert overlapping(TXNS, 11, 14) == ([TXNS[1]], True)
    assert overlapping(TXNS, 11, 16) == ([TXNS[1], TXNS[2]], True)
    assert overlapping(TXNS, 21, 40) == ([TXNS[2]], False)
    assert overlapping([], 0, 9) == ([], False)


@given(st.data())
def test_stopping_early_misses_no_transaction(data: st.DataObject) -> None:
    """Whatever transactions run at once, the early stop gives what a full search gives."""
    open_since: dict[int, int] = {}
    ended: list[AbortedTxn] = []
    for offset in range(data.draw(st.integers(0, 30))):
        producer = data.draw(st.integers(0, 3))
        if producer in open_since and data.draw(st.booleans()):
            first = open_since.pop(producer)
            stable = min(open_since.values(), default=offset + 1)
            ended.append(AbortedTxn(producer, first, offset, stable))
        else:
            open_since.setdefault(producer, offset)
    start = data.draw(st.integers(0, 31))
    # A read_committed fetch never passes the last stable offset.
    end = data.draw(st.integers(start, max(start, min(open_since.values(), default=31))))
    found, _ = overlapping(ended, start, end)
    assert found == [t for t in ended if t.last_offset >= start and t.first_offset < end]
