"""Finds logs that lack committed records although the metadata lists their replicas as in sync.

This happens after a restore of metadata from before the ISR shrank. If no leader was elected since,
no leader epoch shows it; but a replica that is in sync has everything below the high watermark of
any replica.
"""

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.errors import StorageError
from penstock.log.checkpoint import read_offsets
from penstock.log.files import Files
from penstock.log.found import FoundDirectory
from penstock.log.leftovers import base_offsets
from penstock.log.log_dir import HIGH_WATERMARKS
from penstock.log.scan import spans
from penstock.log.segment_files import LOG, offset_path
from penstock.metadata.image import Topic
from penstock.record.batch import CorruptBatch
from penstock.types import TopicPartition


class _Replica(NamedTuple):
    broker: int
    path: Path
    high_watermark: int


def logs_behind(
    files: Files, directories: Iterable[FoundDirectory], topics: Mapping[str, Topic]
) -> list[Path]:
    """The directories of partitions that are in sync only in the metadata. Logs are read only where
    high watermarks differ.
    """
    replicas: dict[TopicPartition, list[_Replica]] = {}
    for each in directories:
        if each.identity is None or each.identity.broker_id is None:
            continue
        marks = _high_watermarks(files, each.path)
        for log in each.logs:
            found = _Replica(each.identity.broker_id, log.path, marks.get(log.partition, 0))
            replicas.setdefault(log.partition, []).append(found)
    behind = []
    for partition, together in replicas.items():
        topic = topics.get(partition.topic)
        known = None if topic is None else topic.partitions.get(partition.partition)
        if known is not None and len(together) > 1:
            behind += _behind(files, together, known.isr)
    return behind


def _behind(files: Files, together: Iterable[_Replica], isr: Container[int]) -> list[Path]:
    highest = max(each.high_watermark for each in together)
    if all(each.high_watermark == highest for each in together if each.broker in isr):
        return []
    ends = {each: _end_offset(files, each.path) for each in together}
    # A checkpoint entry may be of a deleted topic, so only what is in the replica's own log counts.
    committed = max(min(each.high_watermark, end) for each, end in ends.items())
    return [each.path for each, end in ends.items() if each.broker in isr and end < committed]


def _high_watermarks(files: Files, directory: Path) -> dict[TopicPartition, int]:
    try:
        return read_offsets(files, directory / HIGH_WATERMARKS)
    except StorageError:
        return {}  # the worker's own start handles damage


def _end_offset(files: Files, partition: Path) -> int:
    """The log's end offset by batch headers; recovery finds damaged records."""
    try:
        end = max(base_offsets(files.names(partition)), default=0)
        path = offset_path(partition, end, LOG)
        if not files.exists(path):
            return 0
        file = files.open(path)
    except StorageError:
        return 0
    try:
        for _, _, last, _ in spans(file, 0, file.size):
            end = last + 1
    except (CorruptBatch, StorageError):
        pass
    finally:
        file.close()
    return end
