"""Which batches of a fetched partition a reader may see."""

from collections.abc import Iterable, Iterator

from penstock.record.batch import BatchHeader, CorruptBatch, batches, crc_matches
from penstock.record.control import read_marker
from penstock.record.record import Record, records
from penstock.types import Buffer
from penstock.wire.messages.fetch import AbortedTransaction


def visible(
    fetched: Buffer, aborted: Iterable[AbortedTransaction] | None, limit_bytes: int
) -> Iterator[tuple[BatchHeader, Iterator[Record]]]:
    """Each whole batch with the records in it that a reader may see.

    A batch without any is in it too: it moves the reader's position. `aborted` is what the
    broker answers to a reader of committed records; each is over at its producer's marker.
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
    """The same before its records are made: the batch's bytes, or None where all is hidden."""
    ahead = sorted(aborted or (), key=lambda each: each.first_offset, reverse=True)
    undone: set[int] = set()
    whole = memoryview(fetched)
    for at, header in batches(whole):
        if check_crcs and not crc_matches(whole, header, at):
            raise CorruptBatch(f"the CRC of the batch at offset {header.base_offset} is wrong")
        batch = whole[at : at + header.size_bytes]
        while ahead and ahead[-1].first_offset <= header.last_offset:
            undone.add(ahead.pop().producer_id)
        if header.is_control:
            if header.producer_id in undone and _is_abort(batch, header, limit_bytes):
                undone.discard(header.producer_id)
            yield header, None
        elif header.is_transactional and header.producer_id in undone:
            yield header, None
        else:
            yield header, batch


def _is_abort(batch: Buffer, header: BatchHeader, limit_bytes: int) -> bool:
    markers = map(read_marker, records(batch, header, limit_bytes))
    return any(marker is not None and not marker.committed for marker in markers)
