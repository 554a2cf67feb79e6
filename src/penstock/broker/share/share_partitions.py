"""The share-partitions that this broker leads, and the sessions of members that fetch them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor

from penstock.broker.cluster import Cluster
from penstock.broker.share.circuit_breaker import DeliveryRules
from penstock.broker.share.dead_letter_writer import DeadLetterWriter, LetterRules, PostedLetter
from penstock.broker.share.dead_letters import ShareLetter
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.broker.share.persister import Persister
from penstock.broker.share.reading import is_marker, read_record
from penstock.broker.share.sessions import ShareSessionKey, ShareSessions
from penstock.broker.share.share_partition import DueLetter, ShareLimits
from penstock.broker.time_search import search
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.config.share_group import (
    EARLIEST,
    ShareGroupConfig,
    duration_ms,
    effective_share_config,
)
from penstock.coordinator.share.state import SharePartitionKey
from penstock.loop import Loop
from penstock.metadata.errors import StoreError
from penstock.metadata.features import SHARE_VERSION
from penstock.metadata.reader import read_group_config
from penstock.metadata.store import MetadataStore
from penstock.replication.errors import NotLeader
from penstock.replication.partition import Partition
from penstock.types import TopicIdPartition

DEAD_LETTERS = 2
"""The level of `share.version` from which share groups have dead letters."""


class SharePartitions:
    """Belongs to the event loop. A share-partition is loaded by its first request, and dropped when
    the last session of its group ends: its offsets may be altered then.

    `store`: None if no other broker uses it, so that this broker knows all settings.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: MetadataStore | None,
        persister: Persister,
        waiters: Waiters,
        loop: Loop,
        clock: Clock,
        dead_letters: DeadLetterWriter,
        worker: Executor,
    ) -> None:
        self._cluster, self._store = cluster, store
        self._persister, self._waiters = persister, waiters
        self._dead_letters = dead_letters
        self._loop, self._clock = loop, clock
        self._worker = worker
        self._by_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        """By group: a connection may end thousands of sessions, each in another group."""
        self._starting: dict[str, list[Callable[[ShareGroupConfig], None]]] = {}
        """By group, what awaits its stored settings, until they are requested."""
        self.sessions = ShareSessions()

    def get(
        self, group: str, topic_id_partition: TopicIdPartition, partition: Partition
    ) -> LedSharePartition:
        """The share-partition, which may still be loading."""
        key = SharePartitionKey(group, *topic_id_partition)
        known = self.known(group, topic_id_partition)
        if known is not None:
            is_led = known.is_led and known.partition is partition
            if is_led and not known.only_writes_letters:
                known.is_needed = True
                return known
            known.lose(NotLeader(f"{key} is loaded again"))
        made = LedSharePartition(
            key,
            partition,
            lambda: self.limits(group, partition.topic_partition.topic),
            lambda: self.delivery(group),
            self._post,
            self._persister,
            self._waiters,
            self._loop,
            self._clock,
            lambda then: self._find_start(group, partition, then),
            self._lost,
        )
        self._by_group.setdefault(group, {})[key] = made
        made.load()
        return made

    def __iter__(self) -> Iterator[LedSharePartition]:
        return iter([each for group in self._by_group.values() for each in group.values()])

    def known(self, group: str, topic_id_partition: TopicIdPartition) -> LedSharePartition | None:
        key = SharePartitionKey(group, *topic_id_partition)
        return self._by_group.get(group, {}).get(key)

    def limits(self, group: str, topic: str) -> ShareLimits:
        config = self._cluster.share_group_config(group)
        return ShareLimits(
            config.share_delivery_count_limit,
            config.share_record_lock_duration_ms,
            config.share_partition_max_record_locks,
            config.penstock_share_redelivery_backoff_ms,
            config.penstock_share_redelivery_backoff_max_ms,
            config.penstock_share_key_order,
            bool(self.letters(group, topic).topic),
        )

    def delivery(self, group: str) -> DeliveryRules:
        config = self._cluster.share_group_config(group)
        return DeliveryRules(
            config.penstock_share_pause,
            config.penstock_share_breaker_failures,
            config.penstock_share_breaker_pause_ms,
        )

    def letters(self, group: str, topic: str) -> LetterRules:
        """The dead letter settings. A group that reads its own dead letter topic makes none: they
        would circle for ever.
        """
        config = self._cluster.share_group_config(group)
        has_level = self._cluster.image.features.level(SHARE_VERSION) >= DEAD_LETTERS
        if not has_level or config.errors_deadletterqueue_topic_name == topic:
            return LetterRules()
        return LetterRules(
            config.errors_deadletterqueue_topic_name,
            config.errors_deadletterqueue_copy_record_enable,
        )

    def _post(self, shared: LedSharePartition, due: Sequence[DueLetter]) -> None:
        key, partition = shared.key, shared.partition

        def posted(each: DueLetter) -> PostedLetter:
            letter = ShareLetter(
                key=key,
                state_epoch=shared.state_epoch,
                topic=partition.topic_partition.topic,
                offset=each.offset,
                deliveries=each.deliveries,
                is_rejected=each.is_rejected,
            )
            return PostedLetter(
                letter,
                lambda: self.letters(key.group, letter.topic),
                lambda: read_record(partition.log, each.offset),
                lambda: is_marker(partition.log, each.offset),
                lambda: shared.is_led,
                lambda: shared.letter_written(each.offset),
            )

        self._dead_letters.post([posted(each) for each in due])

    def connection_closed(self, connection: int) -> None:
        for key in self.sessions.of_connection(connection):
            self.end_session(key)

    def end_session(self, key: ShareSessionKey) -> None:
        """End the session; records that the member holds become available to others."""
        session = self.sessions.close(key)
        if session is None:
            return
        for each in self._of_group(key.group):
            each.release(key.member)
        if not self.sessions.has_group(key.group):
            for each in self._of_group(key.group):
                each.retire()

    def _of_group(self, group: str) -> list[LedSharePartition]:
        return list(self._by_group.get(group, {}).values())

    def _lost(self, lost: LedSharePartition) -> None:
        known = self._by_group.get(lost.key.group, {})
        if known.get(lost.key) is lost:
            del known[lost.key]
            if not known:
                del self._by_group[lost.key.group]

    def _find_start(
        self, group: str, partition: Partition, then: Callable[[int | Exception], object]
    ) -> None:
        """Find the start offset for a group without state here."""
        # Before anything waits: records that arrive meanwhile are read.
        end, now_ms = partition.log.high_watermark, self._clock.now_ms()

        def begin(config: ShareGroupConfig) -> None:
            back_ms = duration_ms(config.share_auto_offset_reset)
            if back_ms is not None:
                since_ms = max(now_ms - back_ms, 0)
                self._persister.run(self._search(partition, since_ms, end, then))
            elif config.share_auto_offset_reset == EARLIEST:
                then(partition.log.log_start_offset)
            else:
                then(end)

        if self._store is None:
            begin(self._cluster.share_group_config(group))
        elif group in self._starting:
            self._starting[group].append(begin)
        else:
            self._starting[group] = [begin]
            self._persister.run(self._begin_with_stored_config(self._store, group))

    async def _begin_with_stored_config(self, store: MetadataStore, group: str) -> None:
        """A broker may not have been notified yet that the group was altered to begin at the
        earliest record; it would skip all that there are.
        """
        # Partitions that begin later need a later read.
        begins = self._starting.pop(group)
        try:
            overrides = await read_group_config(store, group)
        except StoreError:
            config = self._cluster.share_group_config(group)
        else:
            config = effective_share_config(overrides, self._cluster.config.share)
        for begin in begins:
            begin(config)

    async def _search(
        self,
        partition: Partition,
        since_ms: int,
        end: int,
        then: Callable[[int | Exception], object],
    ) -> None:
        found = await search(partition.log, since_ms, self._worker)
        if isinstance(found, Exception):
            then(found)
            return
        then(end if found is None else min(found.offset, end))
