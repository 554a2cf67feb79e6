"""Filters the batches of a fetched partition by isolation level."""

from collections.abc import Iterable, Iterator

from penstock.record.batch import BatchHeader, CorruptBatch, batches, crc_matches
from penstock.record.control import read_marker
from penstock.record.record import Record, records
from penstock.types import Buffer
from penstock.wire.messages.fetch import AbortedTransaction


def visible(
    fetched: Buffer, aborted: Iterable[AbortedTransaction] | None, limit_bytes: int
) -> Iterator[tuple[BatchHeader, Iterator[Record]]]:
    """Each whole batch with its visible records.

    Batches without any are included, because they advance the consumer's position. `aborted` comes
    from the fetch response under READ_COMMITTED; each entry ends at its producer's abort marker.
    """
    for header, batch in visible_batches(fetched, aborted, limit_bytes):
        yield header, iter(()) if batch is None else records(batch, header, limit_bytes)


def visible_batches(
    fetched: Buffer,
    aborted: Iterable[AbortedTransaction] | None,
    limit_bytes: int,
    *,
    check_crcs: bool = True,
) -> Iterator[tuple[BatchHeader, memoryview | None]]:
    """Like `visible`, without decoding records: the batch's bytes, or None if all is hidden."""
    upcoming = sorted(aborted or (), key=lambda each: each.first_offset, reverse=True)
    aborting: set[int] = set()
    whole = memoryview(fetched)
    for at, header in batches(whole):
        if check_crcs and not crc_matches(whole, header, at):
            raise CorruptBatch(f"the CRC of the batch at offset {header.base_offset} is wrong")
        batch = whole[at : at + header.size_bytes]
        while upcoming and upcoming[-1].first_offset <= header.last_offset:
            aborting.add(upcoming.pop().producer_id)
        if header.is_control:
            if header.producer_id in aborting and _is_abort(batch, header, limit_bytes):
                aborting.discard(header.producer_id)
            yield header, None
        elif header.is_transactional and header.producer_id in aborting:
            yield header, None
        else:
            yield header, batch


def _is_abort(batch: Buffer, header: BatchHeader, limit_bytes: int) -> bool:
    markers = map(read_marker, records(batch, header, limit_bytes))
    return any(marker is not None and not marker.committed for marker in markers)
