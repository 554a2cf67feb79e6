"""How batches are read from the log for share groups."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.broker.share.batch_keys import (
    MOST_KEYS,
    TURN_BYTES,
    BatchKeys,
    KnownKeys,
    TurnBudget,
    read_keys,
)
from penstock.broker.share.reading import aborted_among, headers, read_record
from penstock.log.lookup import LogSlice
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import BatchHeader, read_header
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec, DecompressionLimit
from penstock.record.record import Record
from penstock.testing.logs import LogRig

LARGE = bytes(2 * TURN_BYTES)


def batch_with(keys: Iterable[bytes | None], value: bytes = b"v") -> bytes:
    return bytes(build_batch(numbered([(each, value) for each in keys], 0), codec=Codec.GZIP))


def keys_of(batch: bytes, known_to: int) -> KnownKeys:
    return read_keys(batch, read_header(batch, 0), known_to, TURN_BYTES)


def test_long_keys_are_stored_as_hashes() -> None:
    given = [b"", b"short", b"k" * 50_000, b"k" * 50_000, b"k" * 50_001, None]
    known = keys_of(batch_with(given), 0).by_offset
    assert list(known) == [0, 1, 2, 3, 4]
    assert (known[0], known[1]) == (b"", b"short")
    assert known[2] == known[3] != known[4]
    assert max(map(len, known.values())) <= 32


def test_the_keys_of_a_long_batch_are_read_in_parts() -> None:
    """A batch of a few bytes may have millions of keys."""
    batch = batch_with([b"k"] * (MOST_KEYS + 5))
    first, rest = keys_of(batch, 0), keys_of(batch, MOST_KEYS)
    assert (first.last, len(first.by_offset)) == (MOST_KEYS - 1, MOST_KEYS)
    assert (rest.last, list(rest.by_offset)) == (MOST_KEYS + 4, [*range(MOST_KEYS, MOST_KEYS + 5)])


def test_a_batch_too_large_for_one_turn_is_refused() -> None:
    with pytest.raises(DecompressionLimit):
        keys_of(batch_with([b"k"], LARGE), 0)


def logged(*batches: bytes) -> tuple[LogSlice, list[tuple[int, BatchHeader]]]:
    rig = LogRig()
    for each in batches:
        rig.append(bytearray(each))
    found = rig.log.read(0, 1 << 30, up_to=rig.log.end_offset)
    assert found is not None
    return found, list(headers(found))


def test_large_batches_are_read_outside_the_event_loop() -> None:
    """So that other requests are served meanwhile, whatever a producer sent."""
    small, large = batch_with([b"a", b"b"]), batch_with([b"c"], LARGE)
    found, positions = logged(small, large, small)

    async def scenario(worker: ThreadPoolExecutor) -> None:
        is_read = asyncio.Event()
        keys = BatchKeys(is_read.set)
        (at_a, a), (at_c, c), _ = positions
        turn = keys.turn(worker, TurnBudget())
        known = turn.read(found, at_a, a, 0)
        assert known is not None
        assert known.by_offset == {0: b"a", 1: b"b"}
        assert turn.read(found, at_c, c, 0) is None, "the rest of this turn is less"
        assert not is_read.is_set()
        assert keys.turn(worker, TurnBudget()).read(found, at_c, c, 2) is None
        await is_read.wait()
        known = keys.turn(worker, TurnBudget()).read(found, at_c, c, 2)
        assert known is not None
        assert (known.by_offset, known.last) == ({2: b"c"}, 2)

    with ThreadPoolExecutor(1) as worker:
        asyncio.run(scenario(worker))


def test_a_turn_reads_a_limited_number_of_bytes() -> None:
    """There may be many small batches."""
    third = batch_with([b"a"], bytes(TURN_BYTES // 3))
    found, positions = logged(*[third] * 4)

    async def scenario(worker: ThreadPoolExecutor) -> list[bool]:
        turn = BatchKeys(lambda: None).turn(worker, TurnBudget())
        return [turn.read(found, *each, 0) is not None for each in positions]

    with ThreadPoolExecutor(1) as worker:
        assert asyncio.run(scenario(worker)) == [True, True, False, False]


@pytest.mark.parametrize("value", [LARGE, bytes(TURN_BYTES // 2)])
def test_all_partitions_of_a_fetch_read_a_limited_number_of_bytes(value: bytes) -> None:
    """At most one large batch is handed to another thread, and no batch is decompressed in vain
    for each of thousands of partitions.
    """
    found, [first, *_] = logged(batch_with([b"a"], value), batch_with([b"b"]))

    async def scenario(worker: ThreadPoolExecutor) -> list[bool]:
        budget = TurnBudget()
        partitions = [BatchKeys(lambda: None) for _ in range(4)]
        read = [each.turn(worker, budget).read(found, *first, 0) for each in partitions]
        begun = [each.taken(first[1], 0) is not None for each in partitions]
        assert budget.key_bytes == 0
        return [known is not None or is_begun for known, is_begun in zip(read, begun, strict=True)]

    with ThreadPoolExecutor(1) as worker:
        assert asyncio.run(scenario(worker)) == [True, False, False, False]


def test_batches_of_aborted_transactions_are_found_among_very_many() -> None:
    """Each of 20,000 batches compared with each of 10,000 transactions would take minutes."""
    positions: list[tuple[int, BatchHeader]] = []
    txns = []
    for offset in range(20_000):
        producer_id = offset % 10
        batch = build_batch(
            [Record(offset, 0, None, b"", [])],
            base_offset=offset,
            producer_id=producer_id,
            transactional=offset != 5,
        )
        positions.append((offset, read_header(batch)))
        if producer_id >= 5:
            txns.append(AbortedTxn(producer_id, offset, offset + 5, offset + 6))
    found = aborted_among(positions, txns)
    assert found == {at for at in range(20_000) if at % 10 >= 5} - {5}
    ended = [AbortedTxn(1, 1, 11, 12), AbortedTxn(1, 31, 31, 32)]
    assert aborted_among(positions, ended) == {1, 11, 31}


def test_a_record_of_a_large_batch_is_read() -> None:
    rig = LogRig()
    rig.append(bytearray(batch_with([b"a", b"b"], LARGE)))
    record = asyncio.run(read_record(rig.log, 1))
    assert record is not None
    assert (record.key, record.value) == (b"b", LARGE)
