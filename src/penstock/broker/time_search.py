"""Searches a log by timestamp off the event loop: one batch may hold millions of records."""

import asyncio
from concurrent.futures import Executor
from typing import Final, TypeAlias

from penstock.broker.error_code import PARTITION_ERRORS
from penstock.log.lookup import TimeSearch
from penstock.log.partition_log import PartitionLog
from penstock.log.time_index import TimestampOffset
from penstock.log.time_search import searches_by_time, searches_for_newest
from penstock.replication.errors import NotLeader

MAX_TIMESTAMP: Final = -3
"""Requests the record with the largest timestamp (KIP-734)."""

Found: TypeAlias = TimestampOffset | Exception | None


async def search(log: PartitionLog, requested: int, worker: Executor) -> Found:
    """The first record at or after the timestamp, None, or the error of the search."""
    by_time = requested != MAX_TIMESTAMP
    try:
        for each in searches_by_time(log, requested) if by_time else searches_for_newest(log):
            if each is None:
                await asyncio.sleep(0)
            found: TimestampOffset | TimeSearch | None = each
            while isinstance(found, TimeSearch):
                with log.log_dir:
                    found = await asyncio.get_running_loop().run_in_executor(worker, found.run)
            if log.is_gone:
                # Its files may be deleted by now, and a failed read would look like a failed disk.
                return NotLeader("the log was deleted or moved while it was searched")
            if found is not None:
                return found
    except PARTITION_ERRORS as error:
        return error
    return None
