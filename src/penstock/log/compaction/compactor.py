"""Runs compaction in the broker: always cleans the dirtiest log next."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from itertools import count
from pathlib import Path

from penstock.clock import Clock
from penstock.config.storage import StorageConfig
from penstock.errors import KafkaError, StorageError
from penstock.log.compaction.child import CleaningProcess
from penstock.log.compaction.cleanable import (
    DirtyPart,
    LogState,
    dirtiest,
    dirty_part,
    is_worth_cleaning,
)
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
from penstock.log.segment import Segment
from penstock.loop import with_turns
from penstock.types import TopicPartition

DEATHS_ALLOWED = 3

RETRY_MS = 60_000
"""The pause before a log that met a full disk is cleaned again."""

LOGS_A_TURN = 100
"""Logs weighed before other work on the loop gets its turn."""

logger = logging.getLogger(__name__)


class LiveSegment:
    """A segment as compaction weighs it; its times are read only if they matter."""

    __slots__ = ("_segment", "base_offset", "size_bytes")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.base_offset, self.size_bytes = segment.base_offset, segment.size_bytes

    @property
    def first_ms(self) -> int:
        return self._segment.first_timestamp

    @property
    def newest_ms(self) -> int:
        return self._segment.newest_ms


class Compactor:
    """Belongs to the event loop, like the logs; `logs` returns the broker's current logs.

    A damaged log is skipped until it is truncated, created again, or loaded at the next start:
    `uncleanable` says why. A log that met a full disk is tried again.
    """

    def __init__(
        self,
        files: Files,
        logs: Callable[[], Iterable[PartitionLog]],
        clock: Clock,
        settings: Callable[[], StorageConfig],
    ) -> None:
        self._files, self._logs, self._clock, self._settings = files, logs, clock, settings
        self._checkpoints: dict[Path, dict[TopicPartition, int]] = {}
        self._deaths: Counter[TopicPartition] = Counter()
        self._being_cleaned: set[TopicPartition] = set()
        self._retry_ms: dict[TopicPartition, int] = {}
        """When a log that met a full disk is tried again, by the monotonic clock."""
        self.uncleanable: dict[TopicPartition, str] = {}

    @property
    def threads(self) -> int:
        """The number of logs cleaned at the same time, each by a separate process."""
        settings = self._settings()
        return settings.log_cleaner_threads if settings.log_cleaner_enable else 0

    async def run(self) -> None:
        """Clean until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in count():
                while number >= self.threads:
                    await self._back_off()
                tasks.create_task(self._work(number))

    async def _work(self, number: int) -> None:
        """One of the cleaner threads; idle while `log.cleaner.threads` is lower than its number."""
        process = CleaningProcess()
        try:
            while True:
                if number >= self.threads or not await self.clean_dirtiest(process):
                    await self._back_off()
        finally:
            await process.close()

    async def _back_off(self) -> None:
        await asyncio.sleep(self._settings().log_cleaner_backoff_ms / 1000)

    async def clean_dirtiest(self, process: CleaningProcess) -> bool:
        """Clean one log; False if none is dirty enough."""
        now_ms = self._clock.now_ms()
        weighed = {}
        async for log in with_turns(list(self._logs()), LOGS_A_TURN):
            if self._is_compacted(log):
                with self._contained(log), log.log_dir:
                    part = dirty_part(self._state(log), log.config, now_ms)
                    weighed[log] = part, log.config
        # Since they were weighed, logs may have been deleted, or begun by another cleaner thread.
        chosen = dirtiest({log: each for log, each in weighed.items() if self._is_compacted(log)})
        if chosen is None:
            return False
        partition = chosen.topic_partition
        self._being_cleaned.add(partition)
        try:
            with self._contained(chosen):
                # Weighed again: a part of a log that was truncated meanwhile may reach too far.
                with chosen.log_dir:
                    part = dirty_part(self._state(chosen), chosen.config, now_ms)
                if is_worth_cleaning(part, chosen.config):
                    await self._clean(process, chosen, part, now_ms)
        finally:
            self._being_cleaned.discard(partition)
        return True

    @contextmanager
    def _contained(self, log: PartitionLog) -> Iterator[None]:
        """A failure of one log does not stop the cleaning of others."""
        try:
            yield
        except StorageError:
            pass  # its directory is offline now, and has logged why
        except KafkaError as error:
            self._mark_uncleanable(log, str(error))

    def truncated(self, log: PartitionLog, offset: int) -> None:
        """Mark the log as dirty from `offset` on: it is about to be truncated, or replaced (0).

        The checkpoint is written before that happens: otherwise a log that grows past the old
        checkpoint would count as clean. The whole segment becomes dirty, because the batch that
        holds the offset is removed whole.
        """
        self._forget_troubles(log.topic_partition)
        segment = log.segments.floor(offset)
        first_dirty = 0 if segment is None else min(segment.base_offset, offset)
        cleaned = self._cleaned(log)
        if cleaned.get(log.topic_partition, 0) > first_dirty:
            cleaned[log.topic_partition] = first_dirty
            with log.log_dir:
                log.log_dir.checkpoints.writer(CLEANER_OFFSETS, dict(cleaned))()

    def forget(self, log_dir: LogDir, partitions: Iterable[TopicPartition]) -> None:
        """Drop the checkpoints of logs that are deleted, or about to be created: new logs start
        dirty.
        """
        cleaned = self._marks(log_dir)
        marked = []
        for partition in partitions:
            self._forget_troubles(partition)
            if partition in cleaned:
                marked.append(partition)
        if marked:
            for partition in marked:
                del cleaned[partition]
            with log_dir:
                log_dir.checkpoints.writer(CLEANER_OFFSETS, dict(cleaned))()

    def _forget_troubles(self, partition: TopicPartition) -> None:
        for known in (self.uncleanable, self._deaths, self._retry_ms):
            known.pop(partition, None)

    def _is_compacted(self, log: PartitionLog) -> bool:
        partition = log.topic_partition
        return (
            not log.is_gone
            and "compact" in log.config.cleanup_policy
            and partition not in self.uncleanable
            and partition not in self._being_cleaned
            and log.log_dir.failure is None
            and self._retry_ms.get(partition, 0) <= self._clock.monotonic_ms()
        )

    def _state(self, log: PartitionLog) -> LogState:
        return LogState(
            [LiveSegment(each) for each in log.segments],
            log.log_start_offset,
            log.last_stable_offset,
            log.end_offset,
            log.recovery_point,
            self._cleaned(log).get(log.topic_partition),
        )

    def job_for(self, log: PartitionLog, now_ms: int) -> CleaningJob:
        """The cleaning job for `log` now, whether it is worth it or not."""
        return self._job(log, dirty_part(self._state(log), log.config, now_ms), now_ms)

    async def _clean(
        self, process: CleaningProcess, log: PartitionLog, part: DirtyPart, now_ms: int
    ) -> None:
        job = self._job(log, part, now_ms)
        async with aclosing(process.clean(job)) as answers:
            async for answer in answers:
                match answer:
                    case CleanedGroup():
                        if not swap_in(self._files, log, answer, self._clock.now_ms()):
                            logger.info("%s changed while it was cleaned", log.topic_partition)
                            return
                    case Finished(cleaned_to):
                        self._deaths.pop(log.topic_partition, None)
                        if log.generation != job.generation:
                            return  # `truncated` has marked it as dirty from there on
                        with log.log_dir:
                            # Before the mark: writing another log's mark writes this one too.
                            await asyncio.to_thread(self._sync_names, log)
                            if log.generation == job.generation:
                                await asyncio.to_thread(self.note_cleaned(log, cleaned_to))
                    case Failed():
                        self._failed(log, job, answer)
                    case Died(exit_code):
                        self._died(log, exit_code)

    def _job(self, log: PartitionLog, part: DirtyPart, now_ms: int) -> CleaningJob:
        config, settings, threads = log.config, self._settings(), max(self.threads, 1)
        map_bytes = (
            settings.log_cleaner_dedupe_buffer_size * settings.log_cleaner_io_buffer_load_factor
        )
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
            index_interval_bytes=log.segments.limits.interval_bytes,
            generation=log.generation,
            # The threads share one buffer size and one rate, as in Kafka.
            dedupe_buffer_bytes=int(map_bytes / threads),
            io_buffer_bytes=settings.log_cleaner_io_buffer_size // threads,
            io_bytes_per_second=max(settings.log_cleaner_io_max_bytes_per_second / threads, 1),
        )

    def _failed(self, log: PartitionLog, job: CleaningJob, failed: Failed) -> None:
        if unchanged(log, CleanedGroup(job.segments, 0, job.generation)) is None:
            return  # truncated while it was cleaned: the next attempt reads what is there then
        if failed.is_damage:
            self._mark_uncleanable(log, failed.reason)
        elif not log.segments.home.is_gone:
            logger.warning("%s is cleaned later: %s", log.topic_partition, failed.reason)
            self._retry_ms[log.topic_partition] = self._clock.monotonic_ms() + RETRY_MS

    def _died(self, log: PartitionLog, exit_code: int) -> None:
        """A killed process does no harm; a log that kills each process must not block others."""
        partition = log.topic_partition
        logger.warning("the process that cleaned %s ended with %d", partition, exit_code)
        self._deaths[partition] += 1
        if self._deaths[partition] == DEATHS_ALLOWED:
            self._mark_uncleanable(log, f"its cleaning ended {DEATHS_ALLOWED} processes")

    def _mark_uncleanable(self, log: PartitionLog, reason: str) -> None:
        if not log.segments.home.is_gone:  # otherwise a new log of that name would be skipped
            logger.error("%s cannot be cleaned: %s", log.topic_partition, reason)
            self.uncleanable[log.topic_partition] = reason

    def _cleaned(self, log: PartitionLog) -> dict[TopicPartition, int]:
        """The checkpoint of the log's directory."""
        return self._marks(log.log_dir)

    def _marks(self, log_dir: LogDir) -> dict[TopicPartition, int]:
        """The directory's checkpoint, read once."""
        if log_dir.path not in self._checkpoints:
            self._checkpoints[log_dir.path] = log_dir.checkpoints.read(CLEANER_OFFSETS)
        return self._checkpoints[log_dir.path]

    def note_cleaned(self, log: PartitionLog, cleaned_to: int) -> Callable[[], None]:
        """A function, for any thread, that syncs the segments' new names, then writes the
        checkpoint.

        If the checkpoint survived a crash and the names did not, old values would be back in a part
        that counts as clean, and alive again once their tombstone is removed. A log that was
        deleted meanwhile gets no entry: it would apply to a new log of the same name.
        """
        if log.segments.home.is_gone:
            return lambda: None
        cleaned = self._cleaned(log)
        cleaned[log.topic_partition] = cleaned_to
        write = log.log_dir.checkpoints.writer(CLEANER_OFFSETS, dict(cleaned))

        def sync_and_write() -> None:
            self._sync_names(log)
            write()

        return sync_and_write

    def _sync_names(self, log: PartitionLog) -> None:
        home = log.segments.home
        with home.in_use:
            if not home.is_gone:
                self._files.sync_dir(home.directory)
