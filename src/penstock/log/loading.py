"""Loads the logs of all log directories when a broker starts."""

import logging
from contextlib import suppress
from pathlib import Path

from penstock.counted import counted
from penstock.errors import ConfigError, StorageError
from penstock.log.corrupt import CorruptFile
from penstock.log.files import OutOfFiles
from penstock.log.found import IGNORED
from penstock.log.log_dir import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LogDir
from penstock.log.naming import DirectoryRole, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.log.recovery import load_log
from penstock.log.store import LogStore
from penstock.log.truncation import truncate_to
from penstock.types import TopicPartition, Uuid

logger = logging.getLogger(__name__)


def load_logs(store: LogStore, now_ms: int) -> None:
    """Lock the directories and open every log in them."""
    Loading(store, now_ms).run()


class Loading:
    """One start of the broker; it collects directories that are neither logs to serve nor stray."""

    def __init__(self, store: LogStore, now_ms: int) -> None:
        self._store, self._now_ms = store, now_ms
        self._marked: list[tuple[TopicPartition, Path]] = []
        """Directories named `-delete`."""
        self._spare: list[tuple[TopicPartition, Path]] = []
        """Directories named `-future` of a partition that has such a copy already."""
        self._copy_ids: dict[TopicPartition, Uuid] = {}
        """The topic ids that copies state. Their logs may be of other topics."""

    def run(self) -> None:
        store = self._store
        for log_dir in store.dirs:
            try:
                with log_dir:
                    self._load(log_dir)
            except OutOfFiles as error:
                raise ConfigError(f"{error}; raise the limit of open files (ulimit -n)") from None
            except StorageError:
                store.unread.append(log_dir)  # offline from the start; the others serve
        self._set_copies_aside()
        is_whole = len(store.online) == len(store.dirs)
        self._drop_spare(is_whole=is_whole)
        self._truncate_copies()
        if is_whole:
            self._finish_promotions()
        self._remove_marked(is_whole=is_whole)

    def _load(self, log_dir: LogDir) -> None:
        store = self._store
        log_dir.owner.acquire(store.boot_id)
        before, files = len(store.logs), store.files
        if any(files.is_dir(log_dir.path / name) for name in files.names(log_dir.path)):
            how = "after a clean stop" if log_dir.owner.was_clean else "with recovery"
            logger.info("loading the logs in %s %s", log_dir.path, how)
        self._load_dir(log_dir)
        loaded = len(store.logs) - before
        logger.info("loaded %s from %s", counted(loaded, "log"), log_dir.path)
        if log_dir.stale_names:
            store.checkpoint(log_dir)
        else:
            store.checkpoint(log_dir, RECOVERY_POINTS)

    def _load_dir(self, log_dir: LogDir) -> None:
        store = self._store
        recovery_points = log_dir.checkpoints.read(RECOVERY_POINTS)
        log_starts = log_dir.checkpoints.read(LOG_STARTS)
        high_watermarks = log_dir.checkpoints.read(HIGH_WATERMARKS)
        log_dir.stale_names = {*recovery_points, *log_starts, *high_watermarks}
        store.checkpointed |= log_dir.stale_names
        for name in store.files.names(log_dir.path):
            path = log_dir.path / name
            if name in IGNORED or not store.files.is_dir(path):
                continue
            found = parse_dir_name(name)
            if found is None:
                raise ConfigError(
                    f"{path} is not the directory of a partition: nothing else may be here"
                )
            partition = found.topic_partition
            if found.role is DirectoryRole.DELETE:
                self._marked.append((partition, path))
            elif found.role is DirectoryRole.STRAY:
                logger.warning("%s is a stray log; it is kept until you remove it", path)
                store.stray.append(path)
            elif found.role is DirectoryRole.FUTURE and partition in store.future_logs:
                self._spare.append((partition, path))
            else:
                logs = store.future_logs if found.role is DirectoryRole.FUTURE else store.logs
                if partition in logs:
                    raise ConfigError(
                        f"{partition} is both in {logs[partition].path} and in {path}: a disk that "
                        "was offline came back after its replica was created again; move the one "
                        "that ends first away (penstock log dump shows its records)"
                    )
                log = load_log(
                    store.files,
                    log_dir,
                    path,
                    partition,
                    store.config_for(partition.topic),
                    open_segments=store.open_segments,
                    recovery_point=recovery_points.get(partition, 0),
                    log_start_offset=log_starts.get(partition, 0),
                    clean=log_dir.owner.was_clean,
                    now_ms=self._now_ms,
                )
                known_end = max(
                    high_watermarks.get(partition, 0), recovery_points.get(partition, 0)
                )
                if log.end_offset < known_end:
                    logger.warning("%s ends at %d, before %d", path, log.end_offset, known_end)
                    log_dir.owner.mark_unclean_shutdown()
                log.set_high_watermark(log.verified(high_watermarks.get(partition, 0)))
                logs[partition] = log
                log_dir.stale_names.discard(partition)
                ids = store.topic_ids if logs is store.logs else self._copy_ids
                self._read_topic_id(partition, path, ids)

    def _read_topic_id(
        self, partition: TopicPartition, path: Path, ids: dict[TopicPartition, Uuid]
    ) -> None:
        store, metadata = self._store, path / PARTITION_METADATA
        if store.files.exists(metadata):
            try:
                topic_id = decode_partition_metadata(store.files.read(metadata), str(metadata))
            except CorruptFile as error:
                logger.warning("%s; it will be written again", error)
            else:
                ids[partition] = topic_id

    def _set_copies_aside(self) -> None:
        """Keep the copies of deleted topics whose names were used again from becoming logs of the
        new ones. The disk of such a copy failed, so it was not deleted with its topic.
        """
        store = self._store
        for partition, topic_id in self._copy_ids.items():
            if partition not in store.logs:
                store.topic_ids[partition] = topic_id  # it may replace its log, which is gone
            elif store.topic_ids.get(partition, topic_id) != topic_id:
                with suppress(StorageError):  # its directory goes offline, and logs why
                    store.set_copy_aside(
                        partition, "has a copy with the id of a deleted topic whose name was reused"
                    )

    def _drop_spare(self, *, is_whole: bool) -> None:
        """Keep one of several copies: a move to a disk that failed was started again to another.

        Without the partition's log nothing says which copy was about to replace it.
        """
        for partition, path in self._spare:
            if partition in self._store.logs:
                logger.info("%s: removed, %s is copied elsewhere", path, partition)
                self._store.deleted.add(0, path)
            elif is_whole:
                raise ConfigError(
                    f"{partition} has no log, and copies both in "
                    f"{self._store.future_logs[partition].path} and in {path}: "
                    "move one of them away"
                )

    def _truncate_copies(self) -> None:
        """Truncate each copy to a prefix of its log, before anything is appended to the log.

        A copy has more than its log if only the copy was synced when the power failed. One whose
        disk was offline misses what the log has truncated since.
        """
        store = self._store
        for partition, copy in store.future_logs.items():
            log = store.logs.get(partition)
            if log is None:
                continue
            start = max(log.log_start_offset, copy.log_start_offset)
            end = min(log.end_offset, copy.verified(copy.end_offset))
            offset = copy.epochs.shared_end(log.epochs, start, end)
            if offset < copy.end_offset:
                logger.info("%s: truncated at %d, where %s differs", copy.path, offset, log.path)
                with suppress(StorageError):  # its directory goes offline, and logs why
                    truncate_to(copy, offset)
                    store.checkpoint(copy.log_dir, RECOVERY_POINTS, LOG_STARTS)

    def _finish_promotions(self) -> None:
        """Promote copies without a log: they were about to replace it when the broker died.

        Unless the log is there, marked for deletion, its disk was lost or replaced: then the copy
        may lack records.
        """
        store, replaced = self._store, {partition for partition, _ in self._marked}
        for partition in store.future_logs.keys() - store.logs.keys():
            log = store.future_logs.pop(partition, None)
            if log is None:
                continue  # its directory has failed since
            store.logs[partition] = log
            with suppress(StorageError), log.log_dir:  # it goes offline, and logs why
                if partition not in replaced:
                    logger.warning(
                        "%s has no log; the copy %s takes its place", partition, log.path
                    )
                    log.log_dir.owner.mark_unclean_shutdown()
                store.rename(log, DirectoryRole.CURRENT)

    def _remove_marked(self, *, is_whole: bool) -> None:
        """Remove what is marked as deleted, except a log whose copy may be in an offline directory.

        A broker that dies between the two renames of a move leaves the log marked, and its copy
        without the log's name: if the copy's disk is lost, the marked log is all that is left.
        """
        for partition, path in self._marked:
            if is_whole or partition in self._store.logs:
                self._store.deleted.add(0, path)
            else:
                logger.warning(
                    "%s stays while a log directory is offline: it may be the only log of %s",
                    path,
                    partition,
                )
