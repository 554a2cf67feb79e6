"""Finds offsets by timestamp in a partition's log, segment by segment."""

from collections.abc import Iterable, Iterator

from penstock.log import lookup
from penstock.log.lookup import TimeSearch
from penstock.log.partition_log import PartitionLog
from penstock.log.time_index import TimestampOffset


def searches_by_time(log: PartitionLog, timestamp: int) -> Iterator[TimeSearch]:
    """Searches for the first record at or after `timestamp`: one per segment that may hold it.

    The log may change between two of them.
    """
    start: int | None = 0
    while start is not None:
        with log.log_dir:
            start = max(start, log.log_start_offset)
            search = lookup.search_by_time(log.segments, timestamp, start)
        if search is None:
            return
        yield search
        start = search.next_segment


def searches_for_newest(log: PartitionLog) -> Iterator[TimeSearch]:
    """The search for the first record with the largest timestamp (KIP-734), in its batch."""
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


def _first_of(log: PartitionLog, searches: Iterable[TimeSearch]) -> TimestampOffset | None:
    for search in searches:
        found: TimestampOffset | TimeSearch | None = search
        while isinstance(found, TimeSearch):
            with log.log_dir:
                found = found.run()
        if found is not None:
            return found
    return None
