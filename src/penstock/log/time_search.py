"""Finds offsets by timestamp in a partition's log, segment by segment."""

from collections.abc import Iterable, Iterator

from penstock.log import lookup
from penstock.log.lookup import TimeSearch
from penstock.log.partition_log import PartitionLog
from penstock.log.time_index import TimestampOffset


def searches_by_time(log: PartitionLog, timestamp: int) -> Iterator[TimeSearch | None]:
    """Searches for the first record at or after `timestamp`: one per segment that may hold it. None
    where other work should get its turn.

    The log may change between two of them.
    """
    start: int | None = 0
    while start is not None:
        with log.log_dir:
            start = max(start, log.log_start_offset)
            search = lookup.search_by_time(log.segments, timestamp, start)
        if search is None:
            return
        if isinstance(search, int):
            yield None
            start = search
        else:
            yield search
            start = search.next_segment


def searches_for_newest(log: PartitionLog) -> Iterator[TimeSearch | None]:
    """The search for the first record with the largest timestamp (KIP-734), in its batch. None
    where other work should get its turn.
    """
    newest, start = TimestampOffset(-1, 0), log.segments.first.base_offset
    while True:
        with log.log_dir:
            found, following = lookup.newest_of_some(log.segments, start)
        if found.timestamp > newest.timestamp:
            newest = found
        if following is None:
            break
        yield None
        start = following
    if newest.timestamp >= 0:
        with log.log_dir:
            search = lookup.search_for(log.segments, newest)
        if search is not None:
            yield search


def offset_for_timestamp(log: PartitionLog, timestamp: int) -> TimestampOffset | None:
    """The first record at or after `timestamp`; None when all are older."""
    return _first_of(log, searches_by_time(log, timestamp))


def offset_of_max_timestamp(log: PartitionLog) -> TimestampOffset | None:
    """The first record with the largest timestamp; None in an empty log."""
    return _first_of(log, searches_for_newest(log))


def _first_of(log: PartitionLog, searches: Iterable[TimeSearch | None]) -> TimestampOffset | None:
    for search in searches:
        found: TimestampOffset | TimeSearch | None = search
        while isinstance(found, TimeSearch):
            with log.log_dir:
                found = found.run()
        if found is not None:
            return found
    return None
