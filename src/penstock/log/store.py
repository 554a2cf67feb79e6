"""All logs of a broker, in one or more log directories.

Partitions are created, deleted and moved between directories here. `loading` fills the store at
start-up; `upkeep` does what is due by time. A directory that fails takes its partitions offline,
and the others go on.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random, SystemRandom

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.log.delayed_removals import DelayedRemovals
from penstock.log.files import Files, OutOfFiles, check_spare, finished_or_failed, write
from penstock.log.flush import OffLoop
from penstock.log.log_dir import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LogDir
from penstock.log.log_dir_owner import BOOT_ID
from penstock.log.naming import DirectoryRole, dir_name
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import encode_partition_metadata
from penstock.log.recovery import load_log, new_log
from penstock.log.truncation import truncate_fully_and_start_at, truncate_to
from penstock.types import TopicPartition, Uuid, random_uuid

CLOSING_THREADS = 8
"""Threads that sync logs at a clean stop: the disk merges concurrent syncs."""
CLOSED_AT_A_TIME = 16
"""Logs closed together: each holds a handful of files open until it is synced."""

NOTHING_PLANNED: Mapping[LogDir, Sized] = {}

logger = logging.getLogger(__name__)


class PartitionOffline(KafkaError):
    """The partition's log directory has failed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFound(KafkaError):
    """No such log directory, or it is offline."""

    code = ErrorCode.LOG_DIR_NOT_FOUND


class LogStore:
    """The partitions of all log directories; belongs to the event loop.

    `config_for` returns a topic's settings. `on_offline` is called with each directory that fails
    and the partitions in it. `before_create` is called before a partition's log is created, to drop
    what is cached under its name.
    """

    def __init__(
        self,
        files: Files,
        paths: Iterable[Path],
        config_for: Callable[[str], TopicConfig],
        *,
        boot_id: str,
        open_segments: OpenSegments | None = None,
        on_offline: Callable[[LogDir, list[TopicPartition]], None] | None = None,
        before_create: Callable[[LogDir, TopicPartition], object] | None = None,
        chance: Random | None = None,
        is_cordoned: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        self.files = files
        self.is_cordoned = is_cordoned
        self._chance = chance or SystemRandom()
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        """Unfinished copies of logs that move to another directory."""
        self.topic_ids: dict[TopicPartition, Uuid] = {}
        self.checkpointed: set[TopicPartition] = set()
        """Partitions in the checkpoint files at the start: after a clean stop, all that had a
        log."""
        self.stray: list[Path] = []
        """Directories of logs that this broker may not serve, kept until an operator removes
        them."""
        self.deleted: DelayedRemovals[Path] = DelayedRemovals()
        """Directories of deleted partitions, which `upkeep` removes."""
        self.dirs = [LogDir(files, path, self._failed) for path in paths]
        self.config_for = config_for
        self.boot_id = boot_id
        self.open_segments = open_segments or OpenSegments()
        self.on_offline, self.before_create = on_offline, before_create
        self.unread: list[LogDir] = []
        """Directories that failed while their logs were loaded."""
        self._made: deque[tuple[PartitionLog, Uuid]] = deque()
        """Logs that another thread has created. They are added later if the caller was cancelled:
        a clean stop has to sync them.
        """
        self._unsynced: dict[LogDir, set[TopicPartition]] = {}
        """Deleted partitions that a crash may bring back."""

    @property
    def online(self) -> list[LogDir]:
        return [log_dir for log_dir in self.dirs if log_dir.failure is None]

    @property
    def is_complete(self) -> bool:
        """Whether every directory was read at the start; then an unknown log does not exist."""
        return not self.unread

    @property
    def was_closed(self) -> bool:
        """Whether the last broker stopped cleanly, in every directory."""
        return all(log_dir.owner.was_clean and log_dir.failure is None for log_dir in self.dirs)

    @property
    def had_unclean_shutdown(self) -> bool:
        """Acknowledged records may be missing in some directory."""
        return any(log_dir.owner.had_unclean_shutdown for log_dir in self.online)

    def mark_unclean_shutdown(self) -> None:
        for log_dir in self.online:
            with suppress(StorageError), log_dir:  # it goes offline, and the others serve
                log_dir.owner.mark_unclean_shutdown()

    def clear_unclean_shutdown(self) -> None:
        """Clear the mark, once replicas with missing records no longer count as in sync."""
        for log_dir in self.online:
            with suppress(StorageError), log_dir:
                log_dir.owner.clear_unclean_shutdown()

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        return self.logs.get(partition)

    def create(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        now_ms: int,
        *,
        path: Path | None = None,
        future: bool = False,
    ) -> PartitionLog:
        """A new, empty log, in the directory `path` or in the one with the fewest logs of those
        that are not cordoned (KIP-1066).
        """
        log_dir = self._dir_of(partition) if path is None else self._dir(path)
        role = DirectoryRole.FUTURE if future else DirectoryRole.CURRENT
        logs = self.future_logs if future else self.logs
        assert partition not in logs
        directory = log_dir.path / dir_name(partition, role, random_uuid(self._chance).hex)
        if partition in log_dir.stale_names:
            # An older log's offsets must not be applied to this one after a crash.
            self.checkpoint(log_dir)
        if self.before_create is not None:
            self.before_create(log_dir, partition)
        with log_dir:
            log = load_log(
                self.files,
                log_dir,
                directory,
                partition,
                self.config_for(partition.topic),
                open_segments=self.open_segments,
                recovery_point=0,
                log_start_offset=0,
                clean=True,
                now_ms=now_ms,
            )
        logs[partition] = log
        self.name_topic(log, topic_id)
        return log

    async def create_off_loop(
        self, new: Mapping[TopicPartition, Uuid], now_ms: int, off_loop: OffLoop
    ) -> Mapping[TopicPartition, StorageError]:
        """Create the logs of these partitions, with their topic ids, on another thread: a file
        system takes up to a millisecond for each file. One call at a time.

        Returns what was begun in a directory that failed: begun again in another one, the log would
        exist twice. All else that is missing then is left to `create`.
        """
        self._add_made()
        failed: dict[TopicPartition, StorageError] = {}
        planned: dict[LogDir, dict[TopicPartition, Uuid]] = {}
        for partition, topic_id in new.items():
            if partition not in self.logs and self.online and self._begun(partition) is None:
                planned.setdefault(self._roomiest(planned), {})[partition] = topic_id
        for log_dir, logs in planned.items():
            with suppress(StorageError), log_dir:
                stale = set(log_dir.stale_names)
                if not stale.isdisjoint(logs):  # as in `create`
                    await off_loop(self._checkpoint_writer(log_dir))
                    log_dir.stale_names -= stale
                makes = [self._maker(log_dir, *each, now_ms, failed) for each in logs.items()]
                await off_loop(partial(_call_each, makes))
        self._add_made()
        return {each: error for each, error in failed.items() if not isinstance(error, OutOfFiles)}

    def _maker(
        self,
        log_dir: LogDir,
        partition: TopicPartition,
        topic_id: Uuid,
        now_ms: int,
        failed: dict[TopicPartition, StorageError],
    ) -> Callable[[], None]:
        """A function, for any thread, that creates the log. `_add_made` adds it then."""
        if self.before_create is not None:
            self.before_create(log_dir, partition)
        files, directory = self.files, log_dir.path / str(partition)
        config, open_segments = self.config_for(partition.topic), self.open_segments

        def make() -> None:
            try:
                # The id first: a directory without a segment counts as new, wherever this stops.
                files.make_dir(directory)
                write(files, directory / PARTITION_METADATA, encode_partition_metadata(topic_id))
                log = new_log(files, log_dir, directory, partition, config, open_segments, now_ms)
            except StorageError as error:
                failed[partition] = error
                raise
            log.sync_later(PARTITION_METADATA)
            self._made.append((log, topic_id))

        return make

    def _add_made(self) -> None:
        while self._made:
            log, topic_id = self._made.popleft()
            if log.topic_partition not in self.logs:
                self.logs[log.topic_partition] = log
                self.topic_ids[log.topic_partition] = topic_id

    def name_topic(self, log: PartitionLog, topic_id: Uuid) -> None:
        """Write the topic id into the log's directory. The next flush syncs it; the metadata
        store knows it as well.
        """
        with log.log_dir:
            data = encode_partition_metadata(topic_id)
            write(self.files, log.path / PARTITION_METADATA, data)
        log.sync_later(PARTITION_METADATA)
        self.topic_ids[log.topic_partition] = topic_id

    def _dir_of(self, partition: TopicPartition) -> LogDir:
        """The directory where its log was begun when descriptors ran out, or else the roomiest.

        A log must not exist twice.
        """
        return self._begun(partition) or self._roomiest()

    def _begun(self, partition: TopicPartition) -> LogDir | None:
        begun = (each for each in self.online if self.files.exists(each.path / str(partition)))
        return next(begun, None)

    def _roomiest(self, planned: Mapping[LogDir, Sized] = NOTHING_PLANNED) -> LogDir:
        """The directory with the fewest logs, `planned` ones included."""
        if not self.online:
            raise PartitionOffline("every log directory is offline")
        # If all are cordoned, one has to take what the controller has placed here.
        online = [each for each in self.online if not self.is_cordoned(each.path)] or self.online
        if len(online) == 1:
            return online[0]  # counting thousands of logs is slow
        return min(online, key=lambda each: len(self.logs_in(each)) + len(planned.get(each, ())))

    def _dir(self, path: Path) -> LogDir:
        for log_dir in self.online:
            if log_dir.path == path:
                return log_dir
        raise LogDirNotFound(f"{path} is not a log directory of this broker, or it is offline")

    def logs_in(self, log_dir: LogDir) -> list[PartitionLog]:
        logs = [*self.logs.values(), *self.future_logs.values()]
        return [log for log in logs if log.log_dir is log_dir]

    def delete(self, partition: TopicPartition, *, future: bool = False, sync: bool = True) -> None:
        """Drop a log: its directory is renamed now and removed later.

        Without `sync` a crash may bring it back until the caller has called `sync_deletions`, so
        that thousands of deletions share one sync.
        """
        log = self.future_logs.pop(partition) if future else self.logs[partition]
        with log.log_dir:
            self.rename(log, DirectoryRole.DELETE, for_good=True, sync=sync)
        if not sync:
            self._unsynced.setdefault(log.log_dir, set()).add(partition)
        if not future:  # on a failed disk the log stays: it must not count as deleted
            del self.logs[partition]
            self.topic_ids.pop(partition, None)
        self._remove_later(log)

    async def sync_deletions(self, off_loop: OffLoop) -> set[TopicPartition]:
        """Sync deletions; returns those that a crash may undo, in directories that failed.

        One call at a time, and no deletion without `sync` meanwhile.
        """
        for log_dir in list(self._unsynced):
            with suppress(StorageError), log_dir:
                await off_loop(partial(self.files.sync_dir, log_dir.path))
                del self._unsynced[log_dir]
        return set[TopicPartition]().union(*self._unsynced.values())

    def _remove_later(self, log: PartitionLog) -> None:
        log.log_dir.stale_names.add(log.topic_partition)
        self.deleted.add(log.config.file_delete_delay_ms, log.path)

    def set_aside(self, partition: TopicPartition, why: str) -> None:
        """Keep a log that may not be served: its directory is renamed to `-stray`, as Kafka does.

        It is closed before, so that it is whole if an operator renames it back. A copy in another
        directory comes first: without the log, the next start would take the copy for it.
        """
        self.set_copy_aside(partition, why)
        self._keep_as_stray(self.logs, partition, why)
        self.topic_ids.pop(partition, None)

    def set_copy_aside(self, partition: TopicPartition, why: str) -> None:
        """As `set_aside`, for a copy alone: the log itself is served."""
        self._keep_as_stray(self.future_logs, partition, why)

    def _keep_as_stray(
        self, logs: dict[TopicPartition, PartitionLog], partition: TopicPartition, why: str
    ) -> None:
        log = logs.get(partition)
        if log is None:
            return
        with log.log_dir:
            log.close()
            self.rename(log, DirectoryRole.STRAY, for_good=True)
        del logs[partition]
        log.log_dir.stale_names.add(partition)
        self.stray.append(log.path)
        logger.warning(
            "partition %s %s; its log is kept as %s until you remove it", partition, why, log.path
        )

    def count_stray(self) -> int:
        """How many stray directories there are; an operator may have removed some."""
        self.stray = [path for path in self.stray if self.files.exists(path)]
        return len(self.stray)

    def rename(
        self, log: PartitionLog, role: DirectoryRole, *, for_good: bool = False, sync: bool = True
    ) -> None:
        directory = log.log_dir.path / dir_name(
            log.topic_partition, role, random_uuid(self._chance).hex
        )
        check_spare(self.files, log.log_dir.path / BOOT_ID)
        with finished_or_failed():
            log.segments.move(directory, for_good=for_good)
            if sync:
                self.files.sync_dir(log.log_dir.path)

    def promote_future(self, partition: TopicPartition) -> PartitionLog:
        """Replace the partition's log by its copy in another directory.

        A failure takes only its own directory offline: the copy is renamed after the log, and the
        log gets its name back if that fails.
        """
        future = self.future_logs[partition]
        current = self.logs[partition]
        future.flush()
        with current.log_dir:
            self.rename(current, DirectoryRole.DELETE)
        try:
            with future.log_dir:
                self.rename(future, DirectoryRole.CURRENT)
        except StorageError:
            with current.log_dir:
                self.rename(current, DirectoryRole.CURRENT)
            raise
        current.segments.home.is_gone = True
        self._remove_later(current)
        self.logs[partition] = self.future_logs.pop(partition)
        future.set_high_watermark(current.high_watermark)
        self.checkpoint(future.log_dir)
        return future

    def truncate(self, targets: Mapping[TopicPartition, int]) -> None:
        """Truncate logs to offsets, as a follower does before it follows.

        Lowered offsets are on disk before anything is appended: after a crash a recovery point
        would otherwise cover bytes that were never synced, and a log start past the end would drop
        the whole log. A copy in another directory is truncated too: it would otherwise keep what
        the log no longer has.
        """
        lowered = set()
        for partition, offset in targets.items():
            log, copy = self.logs.get(partition), self.future_logs.get(partition)
            if log is not None and truncate_to(log, offset):
                lowered.add(log.log_dir)
            with self._copy_or_none(partition):
                if copy is not None and truncate_to(copy, offset):
                    self.checkpoint(copy.log_dir, RECOVERY_POINTS, LOG_STARTS)
        for log_dir in lowered:
            self.checkpoint(log_dir, RECOVERY_POINTS, LOG_STARTS)

    def truncate_fully(self, partition: TopicPartition, offset: int, now_ms: int) -> None:
        """Drop all records of a partition and start at `offset`."""
        log, copy = self.logs.get(partition), self.future_logs.get(partition)
        if log is not None:
            truncate_fully_and_start_at(log, offset, now_ms)
            self.checkpoint(log.log_dir, RECOVERY_POINTS, LOG_STARTS)
        with self._copy_or_none(partition):
            if copy is not None:
                truncate_fully_and_start_at(copy, offset, now_ms)
                self.checkpoint(copy.log_dir, RECOVERY_POINTS, LOG_STARTS)

    @contextmanager
    def _copy_or_none(self, partition: TopicPartition) -> Iterator[None]:
        """Forget a copy that fails: its log goes on, and the next start compares the two."""
        try:
            yield
        except StorageError as error:
            logger.warning("the copy of %s is given up: %s", partition, error)
            self.future_logs.pop(partition, None)

    def checkpoint(self, log_dir: LogDir, *names: str) -> None:
        """Write checkpoint files now: all of them, unless some are named."""
        with log_dir:
            self._checkpoint_writer(log_dir, *names)()
        if not names:
            log_dir.stale_names.clear()

    def _checkpoint_writer(self, log_dir: LogDir, *names: str) -> Callable[[], None]:
        """A function, for any thread, that writes checkpoint files as of now."""
        writers = [
            log_dir.checkpoints.writer(name, self.offsets(log_dir, name))
            for name in names or OFFSETS
        ]
        return partial(_call_each, writers)

    def offsets(self, log_dir: LogDir, name: str) -> dict[TopicPartition, int]:
        """The current contents of a checkpoint file."""
        found = {log.topic_partition: OFFSETS[name](log) for log in self.logs_in(log_dir)}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def _failed(self, log_dir: LogDir) -> None:
        # Copies there are of no use until the next start, and must not hold up their logs.
        copies = self.future_logs.items()
        self.future_logs = {each: copy for each, copy in copies if copy.log_dir is not log_dir}
        offline = [partition for partition, log in self.logs.items() if log.log_dir is log_dir]
        if self.on_offline is not None:
            self.on_offline(log_dir, offline)

    def _close_logs(self, logs: list[PartitionLog]) -> None:
        with ThreadPoolExecutor(CLOSING_THREADS) as threads:
            for at in range(0, len(logs), CLOSED_AT_A_TIME):
                self._close_some(logs[at : at + CLOSED_AT_A_TIME], threads)

    def _close_some(self, logs: list[PartitionLog], threads: ThreadPoolExecutor) -> None:
        flushes = [(log, flush) for log in logs if (flush := log.begin_close()) is not None]
        for _ in threads.map(lambda pair: pair[1].run(), flushes):
            pass  # raises the first failure
        for log, flush in flushes:
            log.flushed(flush)
        for log in logs:
            log.release()

    def close(self, broker_epoch: int = -1) -> None:
        """A clean stop: everything synced, checkpoints written, each directory marked."""
        self._add_made()
        for log_dir in self.dirs:
            try:
                with log_dir:
                    logs = self.logs_in(log_dir)
                    self._close_logs(logs)
                    self.checkpoint(log_dir)
                    is_verified = not any(log.unverified_gaps for log in logs)
                    log_dir.owner.release(broker_epoch=broker_epoch if is_verified else None)
            except (StorageError, KafkaError) as error:  # the disk fails, or a batch is damaged
                logger.error("a log directory was not stopped cleanly: %s", error)
                log_dir.owner.release(broker_epoch=None)


def _call_each(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _log_start(log: PartitionLog) -> int | None:
    # None: the log starts at the base offset of its first segment.
    start = log.log_start_offset
    return start if start > log.segments.first.base_offset else None


OFFSETS: dict[str, Callable[[PartitionLog], int | None]] = {
    RECOVERY_POINTS: lambda log: log.recovery_point,
    LOG_STARTS: _log_start,
    HIGH_WATERMARKS: lambda log: log.high_watermark,
}
