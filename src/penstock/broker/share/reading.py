"""Reads the log for members of share groups, and acquires records for them."""

import asyncio
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import Executor

import msgspec

from penstock.broker.share.batch_keys import TURN_BYTES, TurnBudget
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.broker.share.share_partition import AcquiredRecords, Acquisition, FetchedBatch
from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES, LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import HEADER_BYTES, BatchHeader, CorruptBatch, read_header
from penstock.record.compression import DecompressionLimit
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records
from penstock.replication import read_fencing

CHUNK_BYTES = 1 << 14
"""Bytes read at a time to find the batch headers of a slice: a chunk has many small batches, and
large ones are skipped.
"""


class ShareRead(msgspec.Struct):
    """A slice of a partition's log, before any of it is acquired."""

    shared: LedSharePartition
    offset: int
    found: LogSlice


class SharedRecords(msgspec.Struct):
    """Records of one partition that a member has acquired; the batches may hold others too."""

    records: LogSlice
    acquired: list[AcquiredRecords]


def read(
    shared: LedSharePartition, max_bytes: int, *, read_committed: bool, min_one_batch: bool
) -> ShareRead | None:
    """Read the next records; None if there is nothing to deliver now."""
    offset = shared.fetch_offset()
    if offset is None:
        return None
    partition = shared.partition
    up_to = read_fencing.visible_end(partition, read_committed=read_committed)
    if offset >= up_to:
        return None
    found = partition.log.read(offset, max_bytes, up_to=up_to, min_one_batch=min_one_batch)
    return None if found is None else ShareRead(shared, offset, found)


def acquire(
    what: ShareRead,
    wanted: Acquisition,
    worker: Executor,
    budget: TurnBudget,
    *,
    read_committed: bool,
) -> SharedRecords | None:
    shared = what.shared
    assert shared.state is not None, "it was read from"
    # The slice may begin with records in flight that are skipped.
    most = wanted.max_records + max(shared.state.next_offset - what.offset, 0)
    positions: list[tuple[int, BatchHeader]] = []
    for position, header in headers(what.found):
        positions.append((position, header))
        budget.batches -= 1
        if header.next_offset - what.offset >= most or budget.batches <= 0:
            break
    if not positions:
        return None
    aborted: set[int] = set()
    if read_committed:
        read_to = positions[-1][1].next_offset
        aborted = aborted_among(
            positions, shared.partition.log.aborted_between(what.offset, read_to)
        )
    batches = fetched_batches(what, positions, aborted, worker, budget)
    if not batches:
        return None
    acquired = shared.acquire(wanted, batches)
    if not acquired:
        return None
    first, last = acquired[0].first, acquired[-1].last
    sent = [
        (position, header)
        for position, header in positions
        if header.last_offset >= first and header.base_offset <= last
    ]
    if not sent:  # only offsets whose records were compacted away
        sent = positions[-1:]
    begin, end = sent[0][0], sent[-1][0] + sent[-1][1].size_bytes
    found = what.found
    return SharedRecords(LogSlice(found.file, found.position + begin, end - begin), acquired)


def aborted_among(
    positions: Iterable[tuple[int, BatchHeader]], txns: Iterable[AbortedTxn]
) -> set[int]:
    """The positions of batches that belong to aborted transactions, which are given in the order of
    their ends. There may be thousands of both.
    """
    by_producer: dict[int, list[AbortedTxn]] = {}
    for txn in txns:
        by_producer.setdefault(txn.producer_id, []).append(txn)
    found: set[int] = set()
    for position, header in positions:
        own = by_producer.get(header.producer_id) if header.is_transactional else None
        if own is None:
            continue
        first = int(header.base_offset)
        at = bisect_left(own, first, key=lambda txn: txn.last_offset)
        if at < len(own) and own[at].first_offset <= first:
            found.add(position)
    return found


def fetched_batches(
    what: ShareRead,
    positions: Sequence[tuple[int, BatchHeader]],
    aborted: Container[int],
    worker: Executor,
    budget: TurnBudget,
) -> list[FetchedBatch]:
    """The batches whose keys are known, if keys matter; of the last one maybe only a part."""
    assert what.shared.state is not None, "it was read from"
    keys_from = what.shared.state.first_unknown_key
    turn = what.shared.keys.turn(worker, budget)
    batches: list[FetchedBatch] = []
    for position, header in positions:
        first, last, is_aborted = header.base_offset, header.last_offset, position in aborted
        if keys_from is None or last < keys_from or header.is_control or is_aborted:
            batches.append(FetchedBatch(first, last, is_aborted))
            continue
        known = turn.read(what.found, position, header, keys_from)
        if known is None:
            break
        batches.append(FetchedBatch(first, known.last, keys=known.by_offset))
        if known.last < last:
            break
    return batches


async def read_record(log: PartitionLog, offset: int) -> Record | None:
    """The record; None if it was deleted or cannot be read. A large batch is read on another
    thread.
    """
    try:
        found = _batch_of(log, offset)
        if found is None:
            return None
        try:
            return _record_in(*found, offset, TURN_BYTES)
        except DecompressionLimit:
            return await asyncio.to_thread(_record_in, *found, offset, DECOMPRESSED_LIMIT_BYTES)
    except (CorruptBatch, InvalidRecord, DecompressionLimit):
        return None


def _record_in(batch: bytes, header: BatchHeader, offset: int, limit_bytes: int) -> Record | None:
    in_batch = records(batch, header, limit_bytes)
    return next((each for each in in_batch if each.offset == offset), None)


def is_marker(log: PartitionLog, offset: int) -> bool:
    """Whether the offset holds a transaction marker, which members never see."""
    try:
        found = _batch_of(log, offset)
    except CorruptBatch:
        return False
    return found is not None and found[1].is_control


def _batch_of(log: PartitionLog, offset: int) -> tuple[bytes, BatchHeader] | None:
    """The batch of a record that was delivered. Reads up to the log end: the record is committed,
    even if the high watermark of a new leader is still behind it.
    """
    if not log.log_start_offset <= offset < log.end_offset:
        return None
    found = log.read(offset, 0, up_to=log.end_offset, min_one_batch=True)
    if found is None:
        return None
    with log.log_dir:
        for position, header in headers(found):
            if header.base_offset > offset:
                return None  # compacted away
            return found.file.read(found.position + position, header.size_bytes), header
    return None


def headers(found: LogSlice) -> Iterator[tuple[int, BatchHeader]]:
    """The position in the slice and the header of each whole batch."""
    at, chunk_at, chunk = 0, 0, b""
    while found.size_bytes - at >= HEADER_BYTES:
        inside = at - chunk_at
        if inside + HEADER_BYTES > len(chunk):
            size = min(CHUNK_BYTES, found.size_bytes - at)
            chunk_at, chunk, inside = at, found.file.read(found.position + at, size), 0
        header = read_header(chunk, inside)
        if at + header.size_bytes > found.size_bytes:
            return
        yield at, header
        at += header.size_bytes
