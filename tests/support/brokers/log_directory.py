"""Opens the logs of a directory on disk and reads them completely."""

from pathlib import Path
from typing import NamedTuple

from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.log_dir import LogDir
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.recovery import load_log
from penstock.record.batch import BatchHeader, batches
from penstock.record.record import Record, records
from penstock.types import TopicPartition

LIMIT_BYTES = 1 << 26


class WholeBatch(NamedTuple):
    """A batch with its records."""

    header: BatchHeader
    records: list[Record]


def open_log(data: Path, partition: TopicPartition, *, clean: bool = True) -> PartitionLog:
    files = DiskFiles()
    log = load_log(
        files,
        LogDir(files, data),
        data / str(partition),
        partition,
        TopicConfig(cleanup_policy=("compact",)),
        open_segments=OpenSegments(),
        recovery_point=0,
        log_start_offset=0,
        clean=clean,
        now_ms=0,
    )
    log.advance_high_watermark(log.end_offset)
    return log


def read_batches(log: PartitionLog) -> list[WholeBatch]:
    found = []
    offset = log.log_start_offset
    while (piece := log.read(offset, 1 << 20, up_to=log.end_offset)) is not None:
        data = piece.read()
        for at, header in batches(data):
            offset = header.next_offset
            batch = data[at : at + header.size_bytes]
            found.append(WholeBatch(header, list(records(batch, header, LIMIT_BYTES))))
    return found


def visible(log: PartitionLog, *, committed: bool) -> list[Record]:
    """The records that a consumer gets."""
    aborted = log.aborted_between(0, log.end_offset) if committed else []
    return [
        record
        for header, found in read_batches(log)
        if not header.is_control
        and not any(
            txn.producer_id == header.producer_id
            and txn.first_offset <= header.base_offset < txn.last_offset
            for txn in aborted
        )
        for record in found
    ]
