"""Finds offsets by timestamp in a partition's log, batch by batch."""

from collections.abc import Iterable, Iterator

from penstock.log import lookup
from penstock.log.lookup import BatchSearch
from penstock.log.partition_log import PartitionLog
from penstock.log.time_index import TimestampOffset


def searches_by_time(log: PartitionLog, timestamp: int) -> Iterator[BatchSearch]:
    """For the first record at or after `timestamp`: the batches that may hold it, in order.

    The log may change between two of them.
    """
    start = log.log_start_offset
    while True:
        with log.log_dir:
            search = lookup.search_by_time(log.segments, timestamp, start)
        if search is None:
            return
        yield search
        start = max(search.header.next_offset, log.log_start_offset)


def searches_for_newest(log: PartitionLog) -> Iterator[BatchSearch]:
    """For the first record with the largest timestamp (KIP-734): the batch that holds it."""
    with log.log_dir:
        search = lookup.search_for_newest(log.segments)
    if search is not None:
        yield search


def offset_for_timestamp(log: PartitionLog, timestamp: int) -> TimestampOffset | None:
    """The first record at or after `timestamp`; None when all are older."""
    return _first_of(log, searches_by_time(log, timestamp))


def offset_of_max_timestamp(log: PartitionLog) -> TimestampOffset | None:
    """The first record with the largest timestamp; None in an empty log."""
    return _first_of(log, searches_for_newest(log))


def _first_of(log: PartitionLog, searches: Iterable[BatchSearch]) -> TimestampOffset | None:
    for search in searches:
        with log.log_dir:
            found = search.run()
        if found is not None:
            return found
    return None
