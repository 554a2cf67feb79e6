"""Compaction as the broker runs it: what is dirtiest is cleaned next, for ever."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from pathlib import Path

from penstock.clock import Clock
from penstock.config.storage import StorageConfig
from penstock.errors import StorageError
from penstock.log.compaction.child import CleaningProcess
from penstock.log.compaction.cleanable import DirtyPart, LogState, SegmentAge, dirtiest, dirty_part
from penstock.log.compaction.job import (
    CleanedGroup,
    CleaningJob,
    Died,
    Failed,
    Finished,
    LastOfProducer,
    SegmentSize,
)
from penstock.log.compaction.swap import swap_in, unchanged
from penstock.log.files import Files
from penstock.log.log_dir import CLEANER_OFFSETS, LogDir
from penstock.log.partition_log import PartitionLog
from penstock.types import TopicPartition

DEATHS_ALLOWED = 3

logger = logging.getLogger(__name__)


class Compactor:
    """Owned by the loop, like the logs. `logs` gives those of the broker as they are now.

    A log that cannot be cleaned is left alone until the next start: `uncleanable` says why.
    """

    def __init__(
        self,
        files: Files,
        logs: Callable[[], Iterable[PartitionLog]],
        clock: Clock,
        settings: StorageConfig,
    ) -> None:
        self._files, self._logs, self._clock, self._settings = files, logs, clock, settings
        self._process = CleaningProcess()
        self._checkpoints: dict[Path, dict[TopicPartition, int]] = {}
        self._deaths: Counter[TopicPartition] = Counter()
        self.uncleanable: dict[TopicPartition, str] = {}

    async def run(self) -> None:
        """Clean until cancelled."""
        try:
            while True:
                if not await self.clean_dirtiest():
                    await asyncio.sleep(self._settings.log_cleaner_backoff_ms / 1000)
        finally:
            await self.close()

    async def clean_dirtiest(self) -> bool:
        """Clean one log; False when none is worth it."""
        now_ms = self._clock.now_ms()
        logs = {log.topic_partition: log for log in self._logs() if self._is_compacted(log)}
        parts = {}
        for partition, log in logs.items():
            with suppress(StorageError), log.log_dir:
                parts[partition] = dirty_part(self._state(log), log.config, now_ms), log.config
        chosen = dirtiest(parts)
        if chosen is None:
            return False
        with suppress(StorageError):  # the directory is offline now, and the others go on
            await self._clean(logs[chosen], parts[chosen][0], now_ms)
        return True

    async def close(self) -> None:
        await self._process.close()

    def truncated(self, log: PartitionLog, offset: int) -> None:
        """The log is about to be cut at `offset`, or replaced (0): what comes after is dirty.

        Written before it happens: a log that grows past the old mark would pass for clean. From
        its segment on, because a batch that holds the offset goes whole.
        """
        segment = log.segments.floor(offset)
        first_dirty = 0 if segment is None else min(segment.base_offset, offset)
        cleaned = self._cleaned(log)
        if cleaned.get(log.topic_partition, 0) > first_dirty:
            cleaned[log.topic_partition] = first_dirty
            with log.log_dir:
                log.log_dir.checkpoint(CLEANER_OFFSETS, dict(cleaned))()

    def forget(self, log_dir: LogDir, partitions: Iterable[TopicPartition]) -> None:
        """These logs are gone, or about to be made: one of the same name begins dirty."""
        cleaned = self._marks(log_dir)
        marked = []
        for partition in partitions:
            self.uncleanable.pop(partition, None)
            self._deaths.pop(partition, None)
            if partition in cleaned:
                marked.append(partition)
        if marked:
            for partition in marked:
                del cleaned[partition]
            with log_dir:
                log_dir.checkpoint(CLEANER_OFFSETS, dict(cleaned))()

    def _is_compacted(self, log: PartitionLog) -> bool:
        return (
            "compact" in log.config.cleanup_policy
            and log.topic_partition not in self.uncleanable
            and log.log_dir.failure is None
        )

    def _state(self, log: PartitionLog) -> LogState:
        return LogState(
            [
                SegmentAge(each.base_offset, each.size_bytes, each.first_timestamp, each.newest_ms)
                for each in log.segments
            ],
            log.log_start_offset,
            log.last_stable_offset,
            log.end_offset,
            log.recovery_point,
            self._cleaned(log).get(log.topic_partition),
        )

    def job_for(self, log: PartitionLog, now_ms: int) -> CleaningJob:
        """What is to be done about `log` now, worth it or not."""
        return self._job(log, dirty_part(self._state(log), log.config, now_ms), now_ms)

    async def _clean(self, log: PartitionLog, part: DirtyPart, now_ms: int) -> None:
        job = self._job(log, part, now_ms)
        async with aclosing(self._process.clean(job)) as answers:
            async for answer in answers:
                match answer:
                    case CleanedGroup():
                        if not swap_in(self._files, log, answer, self._clock.now_ms()):
                            logger.info("%s changed while it was cleaned", log.topic_partition)
                            return
                    case Finished(cleaned_to):
                        with log.log_dir:
                            await asyncio.to_thread(self.note_cleaned(log, cleaned_to))
                    case Failed(reason):
                        self._failed(log, job, reason)
                    case Died(exit_code):
                        self._died(log, exit_code)

    def _job(self, log: PartitionLog, part: DirtyPart, now_ms: int) -> CleaningJob:
        config = log.config
        return CleaningJob(
            directory=str(log.path),
            segments=[
                SegmentSize(each.base_offset, each.size_bytes)
                for each in log.segments
                if each.base_offset < part.first_uncleanable
            ],
            first_dirty=part.first_dirty,
            first_uncleanable=part.first_uncleanable,
            producers=[
                LastOfProducer(
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.batches[-1].last_offset if entry.batches else None,
                )
                for entry in log.producers.producers.values()
            ],
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            dedupe_buffer_bytes=self._settings.log_cleaner_dedupe_buffer_size,
            io_buffer_bytes=self._settings.log_cleaner_io_buffer_size,
        )

    def _failed(self, log: PartitionLog, job: CleaningJob, reason: str) -> None:
        if unchanged(log, CleanedGroup(job.segments, 0)) is None:
            return  # deleted or truncated under the cleaner's hands: another try will tell
        logger.error("%s cannot be cleaned: %s", log.topic_partition, reason)
        self.uncleanable[log.topic_partition] = reason

    def _died(self, log: PartitionLog, exit_code: int) -> None:
        """Killing the process is harmless, but a log that kills it must not stop the others."""
        partition = log.topic_partition
        logger.warning("the process that cleaned %s ended with %d", partition, exit_code)
        self._deaths[partition] += 1
        if self._deaths[partition] == DEATHS_ALLOWED:
            self.uncleanable[partition] = f"its cleaning ended {DEATHS_ALLOWED} processes"

    def _cleaned(self, log: PartitionLog) -> dict[TopicPartition, int]:
        """The checkpoint of the log's directory."""
        return self._marks(log.log_dir)

    def _marks(self, log_dir: LogDir) -> dict[TopicPartition, int]:
        """The directory's checkpoint, read once."""
        if log_dir.path not in self._checkpoints:
            self._checkpoints[log_dir.path] = log_dir.read_offsets(CLEANER_OFFSETS)
        return self._checkpoints[log_dir.path]

    def note_cleaned(self, log: PartitionLog, cleaned_to: int) -> Callable[[], None]:
        """A call, for any thread, that makes it last, after the new names of the segments.

        Were the mark to outlast them, old values would be back where all is taken for clean, and
        alive again when their tombstone goes. A log that was deleted meanwhile leaves no mark: it
        would be that of a new log of the same name.
        """
        if log.segments.home.is_gone:
            return lambda: None
        cleaned = self._cleaned(log)
        cleaned[log.topic_partition] = cleaned_to
        write = log.log_dir.checkpoint(CLEANER_OFFSETS, dict(cleaned))
        home = log.segments.home

        def sync_and_write() -> None:
            with home.in_use:
                if not home.is_gone:
                    self._files.sync_dir(home.directory)
            write()

        return sync_and_write
