"""Commits finished work to the group: offsets, with out-of-order progress as metadata."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.clock import Clock
from penstock.sdk.defaults import Config, consumer_config
from penstock.sdk.interceptor import ConsumerInterceptor, tell_committed
from penstock.sdk.parallel.overflow import OverflowTopic
from penstock.sdk.parallel.progress import LaneProgress, PageState
from penstock.sdk.parallel.saved import (
    IN_TOPIC,
    UnreadableProgress,
    from_metadata,
    key_prefix,
    page_key,
    to_metadata,
)
from penstock.sdk.record import PartitionId

logger = logging.getLogger(__name__)

COMMIT_MS: Final = 1_000
ANSWER_S: Final = 30.0


class AssignedPartition:
    """One assignment of a partition. A new assignment gets a new object, so workers that still hold
    the old one do no harm.
    """

    def __init__(self, progress: LaneProgress, overflow_id: str | None) -> None:
        self.progress = progress
        self.overflow_id = overflow_id
        """The id of its pages in the overflow topic; None: it has none there."""
        self.written: set[int] = set()
        self.is_changed = False


class ProgressCommits:
    """Used by the fetching thread. `lock` guards what workers change: partitions, counts."""

    def __init__(
        self,
        config: Config,
        overflow: OverflowTopic,
        lock: threading.Condition,
        clock: Clock,
        *,
        commit_after: int,
        on_answer: Callable[[], object],
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> None:
        self._group = str(config.get("group.id", ""))
        self._overflow, self._lock, self._clock = overflow, lock, clock
        self._commit_after, self._on_answer = commit_after, on_answer
        self._chain = interceptors
        self.partitions: dict[PartitionId, AssignedPartition] = {}
        self.fresh = 0
        """Records finished since the last commit was sent."""
        self._in_commits: deque[int] = deque()
        """The number of records in each commit in flight."""
        self._stale: list[bytes] = []
        """Pages in the overflow topic that the last commit does not refer to."""
        self._removable: list[bytes] = []
        """Stale pages whose commit is acknowledged: they can be removed."""
        self._committed_ms = clock.monotonic_ms()
        settings = {**config, "enable.auto.commit": False, "on_commit": self._on_commit}
        self.client = confluent_kafka.Consumer(consumer_config(settings))

    @property
    def unacknowledged(self) -> int:
        """Finished records that no acknowledged commit covers. Call it under the lock."""
        return self.fresh + sum(self._in_commits)

    def close(self) -> None:
        self._overflow.close()

    def commit_if_due(self, *, wait: bool = False) -> None:
        with self._lock:
            waited_ms = self._clock.monotonic_ms() - self._committed_ms
            is_due = (wait or not self._in_commits) and (
                self.fresh >= self._commit_after or (self.fresh > 0 and waited_ms >= COMMIT_MS)
            )
        if is_due:
            self.commit(wait=wait)

    def commit(self, *, wait: bool) -> KafkaError | None:
        """Commit what is finished; with `wait`, returns the error of a refused commit."""
        offsets: list[TopicPartition] = []
        overflowing: list[tuple[str, list[PageState]]] = []
        with self._lock:
            count, self.fresh = self.fresh, 0
            for (topic, number), partition in self.partitions.items():
                base = partition.progress.base
                if partition.is_changed and base is not None:
                    partition.is_changed = False
                    metadata = self._metadata(topic, number, partition, overflowing)
                    offsets.append(TopicPartition(topic, number, base, metadata))
            if offsets:  # before the pages are written: meanwhile workers go on up to the bound
                self._in_commits.append(count)
            self._committed_ms = self._clock.monotonic_ms()
            removable, self._removable = self._removable, []
        for prefix, pages in overflowing:
            self._overflow.write(prefix, pages)
        if removable:
            self._overflow.remove(removable)
        if not offsets:
            return None
        try:
            if wait:
                done = self.client.commit(offsets=offsets, asynchronous=False)
                return self._on_commit(None, done, latest=True)
            self.client.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            return self._on_commit(error.args[0], offsets, latest=True)
        return None

    def _metadata(
        self,
        topic: str,
        number: int,
        partition: AssignedPartition,
        overflowing: list[tuple[str, list[PageState]]],
    ) -> str:
        """The commit's metadata. If the pages do not fit, they are added to `overflowing`, to be
        written to the overflow topic before the commit.
        """
        progress = partition.progress
        pages = {each.number: each for each in progress.pages()}
        text = to_metadata(pages.values())
        if partition.overflow_id is None and text is not None:
            return text
        is_new = partition.overflow_id is None
        identity = partition.overflow_id or uuid4().hex
        prefix = key_prefix(self._group, topic, number, identity)
        # Removed only once this commit is acknowledged: until then the previous one needs them.
        gone = partition.written if text is not None else partition.written - pages.keys()
        self._stale += [page_key(prefix, each) for each in gone]
        partition.written = set() if text is not None else set(pages)
        partition.overflow_id = None if text is not None else identity
        if text is not None:
            return text
        changed = pages if is_new else progress.changed()
        overflowing.append((prefix, [pages[each] for each in changed]))
        progress.mark_saved()
        return f"{IN_TOPIC}{identity}"

    def _on_commit(
        self, error: KafkaError | None, offsets: list[TopicPartition], *, latest: bool = False
    ) -> KafkaError | None:
        """Handle the response to a commit; commits are answered in the order they were sent."""
        with self._lock:
            if not self._in_commits:
                return None
            count = self._in_commits.pop() if latest else self._in_commits.popleft()
            failed = error or next((each.error for each in offsets if each.error), None)
            if failed is None:
                self._removable += self._stale
            else:
                logger.warning("a commit failed; the next one has its offsets too: %s", failed)
                self.fresh += count
                for each in offsets:
                    partition = self.partitions.get((each.topic, each.partition))
                    if partition is not None:
                        partition.is_changed = True
            self._stale = []
            self._on_answer()
        if failed is None and self._chain:
            tell_committed(self._chain, {(e.topic, e.partition): e.offset for e in offsets})
        return failed

    def load(self, partitions: list[TopicPartition]) -> None:
        """Start from the offsets and progress that the group has committed."""
        for each in self.client.committed(partitions, ANSWER_S):
            loaded = self._loaded(each)
            with self._lock:
                self.partitions[each.topic, each.partition] = loaded

    def _loaded(self, committed: TopicPartition) -> AssignedPartition:
        base = committed.offset if committed.offset >= 0 else None
        text = committed.metadata or ""
        if base is None or not text:
            return AssignedPartition(LaneProgress(base), None)
        identity = text.removeprefix(IN_TOPIC) if text.startswith(IN_TOPIC) else None
        try:
            if identity is None:
                pages = from_metadata(text)
            else:
                at = committed.topic, committed.partition
                pages = self._overflow.read(key_prefix(self._group, *at, identity))
        except UnreadableProgress as error:
            logger.warning("%s-%d: %s", committed.topic, committed.partition, error)
            return AssignedPartition(LaneProgress(base), None)
        loaded = AssignedPartition(LaneProgress(base, pages), identity)
        if identity is not None:
            loaded.written = {each.number for each in pages}
        self._forget_cut(committed, loaded.progress)
        return loaded

    def _forget_cut(self, committed: TopicPartition, progress: LaneProgress) -> None:
        """Forget finished offsets beyond the end of the log: it was truncated, and other records
        will get those offsets.

        A log that has grown beyond them again meanwhile goes unnoticed.
        """
        _, end = self.client.get_watermark_offsets(committed, ANSWER_S, cached=False)
        if progress.forget_from(end):
            logger.warning(
                "%s-%d ends at %d, before what was finished: its log was cut, and what comes "
                "there is handled anew",
                committed.topic,
                committed.partition,
                end,
            )
