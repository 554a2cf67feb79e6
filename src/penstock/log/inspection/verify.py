"""Reads every file of a log directory and reports what does not fit together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import ConfigError, KafkaError
from penstock.log.checkpoint import read_offsets
from penstock.log.compaction.reading import whole_batches
from penstock.log.corrupt import CorruptFile
from penstock.log.epochs import EPOCHS, LeaderEpochs
from penstock.log.files import Files
from penstock.log.inspection.index_file import IndexCheck, offset_entries, time_entries
from penstock.log.inspection.report import VerificationReport
from penstock.log.leftovers import base_offsets, offset_of
from penstock.log.log_dir import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import decode_meta_properties
from penstock.log.naming import DirectoryRole, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.log.producer_snapshot import decode_snapshot
from penstock.log.segment_files import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_path,
)
from penstock.log.txn_index import decode_aborted
from penstock.record.batch import BatchHeader
from penstock.record.record import records
from penstock.types import TopicPartition

READ_BYTES = 1 << 20
MAX_RECORDS_BYTES = 1 << 30
METADATA_LOG = "__cluster_metadata-0"
WORKER = "worker."
"""Folders of workers: see `local.workers.layout`."""


def verify(files: Files, directory: Path, *, deep: bool = False) -> VerificationReport:
    """Verify a log directory, or one partition's; `deep` decompresses and reads every record."""
    report = VerificationReport()
    if not files.is_dir(directory):
        raise ConfigError(f"{directory} is not a directory")
    if base_offsets(files.names(directory)):
        _PartitionCheck(files, directory, report, deep=deep).run()
        return report
    ends: dict[TopicPartition, tuple[int, int]] = {}
    for name in files.names(directory):
        path = directory / name
        parsed = parse_dir_name(name) if files.is_dir(path) and name != METADATA_LOG else None
        if parsed is not None and parsed.role is DirectoryRole.CURRENT:
            check = _PartitionCheck(files, path, report, deep=deep)
            ends[parsed.topic_partition] = check.run()
        elif parsed is not None:
            report.remark(path, f"is marked as {parsed.role}")
    if not ends and not files.exists(directory / META_PROPERTIES):
        raise ConfigError(
            f"{directory} is not a log directory: it has no partition{_nearby(files, directory)}"
        )
    _check_identity(files, directory, report)
    _check_checkpoints(files, directory, report, ends)
    return report


def _nearby(files: Files, directory: Path) -> str:
    """A hint where logs are, if this is a data directory or the log directory of workers."""
    logs = directory / "logs"
    if not files.is_dir(logs):
        logs = directory
    folders = [logs / name for name in sorted(files.names(logs)) if name.startswith(WORKER)]
    if folders:
        return f"; each worker has a folder, such as {folders[0]}"
    return "" if logs == directory else f"; did you mean {logs}?"


def _check_identity(files: Files, directory: Path, report: VerificationReport) -> None:
    path = directory / META_PROPERTIES
    if not files.exists(path):
        report.remark(path, "is not there")
        return
    with _reporting(report, path):
        decode_meta_properties(files.read(path), str(path))


def _check_checkpoints(
    files: Files,
    directory: Path,
    report: VerificationReport,
    ends: dict[TopicPartition, tuple[int, int]],
) -> None:
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER_OFFSETS):
        path = directory / name
        with _reporting(report, path):
            for partition, offset in read_offsets(files, path).items():
                if partition in ends and offset > ends[partition][1]:
                    end = ends[partition][1]
                    report.damaged(path, f"{partition} at {offset}, but its log ends at {end}")


@contextmanager
def _reporting(report: VerificationReport, path: Path) -> Iterator[None]:
    try:
        yield
    except CorruptFile as error:
        report.damaged(path, error.why)


class _PartitionCheck:
    """One partition's directory."""

    def __init__(
        self, files: Files, directory: Path, report: VerificationReport, *, deep: bool
    ) -> None:
        self._files, self._directory, self._report, self._deep = files, directory, report, deep
        self._names = files.names(directory)
        self._epochs = LeaderEpochs()
        self._next_offset = 0

    def run(self) -> tuple[int, int]:
        """Check the partition; returns its first offset and its end offset."""
        self._report.partitions += 1
        self._check_small_files()
        bases = base_offsets(self._names)
        if not bases:
            self._report.damaged(self._directory, "has no segment")
            return 0, 0
        self._next_offset = bases[0]
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            self._check_segment(base, following)
        self._check_snapshots()
        self._remark_leftovers()
        return bases[0], self._next_offset

    def _check_small_files(self) -> None:
        path = self._directory / PARTITION_METADATA
        if PARTITION_METADATA in self._names:
            with _reporting(self._report, path):
                decode_partition_metadata(self._files.read(path), str(path))
        else:
            self._report.remark(path, "is not there: the topic's id is unknown")
        path = self._directory / EPOCHS
        if EPOCHS in self._names:
            with _reporting(self._report, path):
                self._epochs = LeaderEpochs.decode(self._files.read(path), str(path))

    def _check_segment(self, base: int, following: int | None) -> None:
        path = offset_path(self._directory, base, LOG)
        check = self._index_check(base, is_last=following is None)
        self._report.segments += 1
        self._report.size_bytes += self._files.size(path)
        self._check_aborted(base, following)
        position = 0
        try:
            for batch, header in whole_batches(
                self._files, path, self._files.size(path), READ_BYTES
            ):
                self._check_batch(path, header, base, following)
                self._report.batches += 1
                self._report.records += header.record_count
                check.see(position, header)
                if self._deep:
                    for _ in records(batch, header, MAX_RECORDS_BYTES):
                        pass
                position += header.size_bytes
        except CorruptFile as error:
            self._report.damaged(path, error.why)
            return
        except KafkaError as error:
            self._report.damaged(path, f"has bad records at byte {position}: {error}")
            return
        check.end()
        for suffix, found in check.problems:
            self._report.damaged(path.with_suffix(suffix), found)

    def _check_batch(
        self, path: Path, header: BatchHeader, base: int, following: int | None
    ) -> None:
        start = max(base, self._next_offset)
        is_past = following is not None and header.last_offset >= following
        if header.base_offset < start or header.last_offset < header.base_offset or is_past:
            self._report.damaged(
                path,
                f"has offsets {header.base_offset} to {header.last_offset} "
                f"where {start} to {'the end' if following is None else following - 1} belong",
            )
        self._next_offset = max(self._next_offset, header.next_offset)
        known = self._epochs.epoch_for(header.base_offset)
        if known is None or header.leader_epoch in {-1, known}:
            return
        latest = self._epochs.latest
        if following is None and latest is not None and header.leader_epoch > latest:
            self._epochs.assign(header.leader_epoch, header.base_offset)
            self._report.remark(
                self._directory / EPOCHS,
                "does not have the last epoch yet: a flush, or a start, writes it",
            )
        else:
            self._report.damaged(
                self._directory / EPOCHS,
                f"has epoch {known} for offset {header.base_offset}, "
                f"which was written in epoch {header.leader_epoch}",
            )

    def _index_check(self, base: int, *, is_last: bool) -> IndexCheck:
        entries: list[list[tuple[int, int]]] = [[], []]
        for number, (suffix, decode) in enumerate(
            [(INDEX, offset_entries), (TIME_INDEX, time_entries)]
        ):
            path = offset_path(self._directory, base, suffix)
            if path.name not in self._names:
                if is_last:
                    self._report.remark(path, "is not there yet: a flush, or a start, makes it")
                else:
                    self._report.damaged(path, "is missing")
                continue
            with _reporting(self._report, path):
                entries[number] = decode(self._files.read(path), base, str(path))
        return IndexCheck(entries[0], entries[1])

    def _check_aborted(self, base: int, following: int | None) -> None:
        path = offset_path(self._directory, base, TXN_INDEX)
        if path.name not in self._names:
            return
        with _reporting(self._report, path):
            for txn in decode_aborted(self._files.read(path), base, str(path)):
                if following is not None and txn.last_offset >= following:
                    self._report.damaged(path, f"has {txn}, which ends in a later segment")

    def _check_snapshots(self) -> None:
        for name in self._names:
            offset = offset_of(name)
            if not name.endswith(SNAPSHOT) or offset is None:
                continue
            path = self._directory / name
            with _reporting(self._report, path):
                for entry in decode_snapshot(self._files.read(path), str(path)):
                    if entry.batches and entry.batches[-1].last_offset >= offset:
                        self._report.damaged(
                            path, f"has producer {entry.producer_id} past its own offset"
                        )

    def _remark_leftovers(self) -> None:
        for name in self._names:
            if name.endswith((DELETED, CLEANED, SWAP)):
                self._report.remark(self._directory / name, "is left over; a start resolves it")
