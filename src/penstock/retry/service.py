"""The delay service: reads delay and retry topics, and moves records to their targets when due.

One loop: read what is new and index it; deliver what is due in one transaction, with the progress
and the group's offsets. The offsets fence a member whose partitions have moved: its transaction
cannot be committed. So a crash at any point neither loses nor repeats a record.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.group_consumer import (
    NOT_A_MEMBER,
    GroupConsumer,
    GroupSettings,
    OffsetReset,
    RebalanceListener,
)
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import delete_records, list_offsets
from penstock.client.record_sender import ProducerRecord, RecordMetadata
from penstock.client.transactional_producer import TransactionalProducer
from penstock.clock import Clock, SystemClock
from penstock.config.delay_route import Route
from penstock.errors import ErrorCode, KafkaError
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.policy import (
    Cancel,
    Dead,
    Recur,
    dead_headers,
    delivered_headers,
    judge,
    recurring_headers,
)
from penstock.retry.positions import records_at
from penstock.retry.progress import CHUNK, Outcome
from penstock.retry.state_topic import create_state_topic, load_progress, state_records
from penstock.retry.store.index import Entry, IndexKey, Kind, TimeIndex
from penstock.types import Offset, TopicPartition

GROUP: Final = "penstock-delay"
BATCH: Final = 1000
"""Records of one transaction, by partition."""
IDLE_MS: Final = 500
TRANSACTION_TIMEOUT_MS: Final = 10_000
"""For so long a killed instance may hold up the one that takes over."""
POSTPONED_MS: Final = 60_000
TRIM_MS: Final = 30_000
CHECK_MS: Final = 1_000

CREATION_MS: Final = 1_000
"""For so long a target that does not exist may take to be created."""
REFUSED_MS: Final = 10_000
UNUSABLE: Final = frozenset(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

log = logging.getLogger(__name__)


class TopicMadeAnew(KafkaError):
    """A topic has another id than the progress that is known of it: a new service begins anew."""


class MissingTopic(BrokerRefused):
    """A topic does not exist, and cannot be created."""


@dataclass(slots=True)
class Delivery:
    """What an entry becomes: records to write, and how its record is done with."""

    entry: Entry
    record: ProducerRecord | None = None
    onward: ProducerRecord | None = None
    """With which a schedule goes on."""
    outcome: Outcome = Outcome.DELIVERED
    also_cancelled: int | None = None


class DelayService(RebalanceListener):
    """`async with DelayService(...) as service: while True: await service.step()`.

    If `step` raises, it is unknown what was delivered: a new service goes on, and finds out.
    """

    def __init__(
        self,
        client: Client,
        index: TimeIndex,
        routes: Mapping[str, Route],
        *,
        instance: str,
        clock: Clock | None = None,
    ) -> None:
        """`instance` names this service for good: a restart ends its own open transaction."""
        self._client, self._index, self.routes = client, index, dict(routes)
        self._clock = clock or SystemClock()
        self._partitions: dict[TopicPartition, DelayPartition] = {}
        self._refused: dict[str, tuple[int, BrokerRefused]] = {}
        """Topics that cannot be written, and until when none is asked about them again."""
        self._check_at_ms = self._trim_at_ms = 0
        self._producer = TransactionalProducer(
            client,
            f"{GROUP}-{instance}",
            timeout_ms=TRANSACTION_TIMEOUT_MS,
            create_topics=True,
            clock=self._clock,
        )
        self._consumer = GroupConsumer(
            client,
            GROUP,
            GroupSettings(
                offset_reset=OffsetReset.EARLIEST,
                isolation=IsolationLevel.READ_COMMITTED,
                session_timeout_ms=TRANSACTION_TIMEOUT_MS,
                max_poll_records=5000,
            ),
            listener=self,
            clock=self._clock,
        )

    async def __aenter__(self) -> "DelayService":
        await create_state_topic(self._client)
        await self._producer.init()
        await self._consumer.__aenter__()
        self._subscribe()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._consumer.close()
        await self._producer.close()

    def route(self, routes: Mapping[str, Route]) -> None:
        """Serve these routes from now on. Records that wait already keep their due times."""
        if routes == self.routes:
            return
        self.routes = dict(routes)
        for each in self._partitions.values():
            each.route = routes.get(each.partition.topic, each.route)
        self._subscribe()

    def _subscribe(self) -> None:
        if self.routes:
            self._consumer.subscribe(self.routes)

    async def step(self) -> int:
        """Read what is new, or wait for it until something is due; deliver. Returns how many."""
        if not self.routes:
            return 0
        records = await self._consumer.poll(await self._wait_ms())
        await self._check_topics()
        await self._read(records)
        count = await self._deliver_due()
        await self._trim()
        return count

    # Partitions that come and go, inside a poll.

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        topics = {each.topic for each in partitions}
        ids = {each.name: each.id for each in await self._client.existing_topics(topics)}
        keys = {
            each: IndexKey(ids[each.topic], each.partition)
            for each in partitions
            if each.topic in ids and each.topic in self.routes
        }
        progress = await load_progress(self._client, keys.values())
        starts = await list_offsets(self._client, dict.fromkeys(keys, EARLIEST))
        ends = await list_offsets(
            self._client, dict.fromkeys(keys, LATEST), isolation=IsolationLevel.READ_COMMITTED
        )
        for partition, key in keys.items():
            opened = DelayPartition(partition, key, self.routes[partition.topic], progress[key])
            # What is in the log already may cancel what is due.
            opened.written_to = ends[partition].offset - 1
            await self._open(opened, starts[partition].offset, ends[partition].offset)
            self._partitions[partition] = opened
            self._consumer.seek(partition, opened.progress.read_to)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self.on_lost(partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._partitions.pop(each, None)

    async def _open(self, opened: DelayPartition, log_start: Offset, log_end: Offset) -> None:
        """Go on with the index if it is of use; else it is built from the log.

        An index that has more than the log is of a log that lost its end.
        """
        key, progress = opened.key, opened.progress
        progress.read(log_start)
        indexed_to = await self._index.indexed_to(key)
        if indexed_to is None or not progress.read_to <= indexed_to <= log_end:
            await self._index.clear(key)
            return
        # Delivered before a crash, or by another instance, and not removed from this index.
        entries = await self._index.offsets(key, 0, indexed_to)
        await self._index.remove(key, [each for each in entries if progress.is_done(each)])
        for chunk, count in (await self._index.counts(key, CHUNK)).items():
            progress.waits(chunk * CHUNK, count)
        progress.read(indexed_to)
        opened.resume(await self._index.schedules(key))

    async def _check_topics(self) -> None:
        """Offsets of a topic that was made anew mean other records."""
        now_ms = self._clock.now_ms()
        if now_ms < self._check_at_ms:
            return
        self._check_at_ms = now_ms + CHECK_MS
        known = {each.topic: owned.key.topic_id for each, owned in self._partitions.items()}
        for topic in await self._client.existing_topics(known) if known else ():
            if topic.id != known[topic.name]:
                raise TopicMadeAnew(f"topic {topic.name} was made anew")

    # Reading.

    async def _wait_ms(self) -> int:
        now_ms, wait_ms = self._clock.now_ms(), IDLE_MS
        for each in self._partitions.values():
            due_ms = await self._index.next_due_ms(each.key) if each.is_read else None
            if due_ms is not None:
                wait_ms = min(wait_ms, max(0, due_ms - now_ms))
        return wait_ms

    async def _read(self, records: Iterable[ConsumedRecord]) -> None:
        now_ms = self._clock.now_ms()
        entries: dict[TopicPartition, dict[int, Entry]] = {}
        for each in records:
            owned = self._partitions.get(each.partition)
            if owned is not None:
                found = {entry.offset: entry for entry in owned.read(each.record, now_ms)}
                entries.setdefault(each.partition, {}).update(found)
        for partition, owned in self._partitions.items():
            try:
                position = self._consumer.position(partition)
            except KeyError:
                continue  # its topic was deleted: the next rebalance revokes it
            if partition in entries or position > owned.progress.read_to:
                new = list(entries.get(partition, {}).values())
                await self._index.put(owned.key, new, position)
                owned.progress.read(position)

    # Delivering.

    async def _deliver_due(self) -> int:
        now_ms = self._clock.now_ms()
        deliveries: dict[TopicPartition, list[Delivery]] = {}
        for partition, owned in self._partitions.items():
            due = await self._index.due(owned.key, now_ms, BATCH) if owned.is_read else []
            if due:
                deliveries[partition] = await self._planned(owned, due, now_ms)
        if not deliveries:
            return 0
        await self._producer.begin()
        try:
            await self._write(deliveries, now_ms)
            await self._commit(deliveries)
        except BrokerRefused as error:
            if error.code not in NOT_A_MEMBER:
                raise
            await self._producer.abort()  # the partitions have moved: the next poll tells
            for partition in deliveries:
                self._partitions[partition].progress.abort()
            return 0
        for partition, done in deliveries.items():
            owned = self._partitions[partition]
            owned.progress.commit()
            gone = [each.entry.offset for each in done]
            gone += [each.also_cancelled for each in done if each.also_cancelled is not None]
            await self._index.remove(owned.key, gone)
        return sum(len(each) for each in deliveries.values())

    async def _planned(
        self, owned: DelayPartition, due: Sequence[Entry], now_ms: int
    ) -> list[Delivery]:
        offsets = [each.offset for each in due if each.kind in (Kind.RECORD, Kind.SCHEDULE)]
        records = await records_at(self._client, owned.partition, offsets) if offsets else {}
        same = await self._has_same_partitions(owned)
        planned = []
        for entry in due:
            delivery = Delivery(entry)
            match entry.kind:
                case Kind.SPENT:
                    pass
                case Kind.CANCELLED:
                    delivery.outcome = Outcome.CANCELLED
                case Kind.CANCEL:
                    waiting = await self._index.offsets(owned.key, entry.origin, entry.origin + 1)
                    delivery.also_cancelled = entry.origin if waiting else None
                case Kind.RECORD | Kind.SCHEDULE if entry.offset in records:
                    record = records[entry.offset]
                    delivery.record, delivery.onward = _written(owned, record, now_ms, same=same)
                case Kind.RECORD | Kind.SCHEDULE:
                    log.warning(
                        "%s: the record at %d was deleted before it was due",
                        owned.partition,
                        entry.offset,
                    )
                case _:
                    assert_never(entry.kind)
            planned.append(delivery)
        cancelled = {each.also_cancelled for each in planned}
        return [each for each in planned if each.entry.offset not in cancelled]

    async def _has_same_partitions(self, owned: DelayPartition) -> bool:
        """Whether records can keep their partitions."""
        (topic,) = await self._client.topics([owned.route.topic])
        if topic.id != owned.key.topic_id:
            raise TopicMadeAnew(f"topic {topic.name} was made anew")
        try:
            target = await self._client.existing_topics([owned.route.to])
        except BrokerRefused as error:
            if error.code not in UNUSABLE:
                raise
            return False
        return [len(each.partitions) for each in target] == [len(topic.partitions)]

    async def _write(self, deliveries: dict[TopicPartition, list[Delivery]], now_ms: int) -> None:
        """Write the records; those that a broker rejects become dead letters.

        What neither the target nor the dead letters take waits on, and so does its schedule.
        """
        everything = [
            (partition, each, each.record)
            for partition, planned in deliveries.items()
            for each in planned
            if each.record is not None
        ]
        for partition, delivery, refused in await self._written_or_dead(everything):
            log.error("%s at %d stays: %s", partition, delivery.entry.offset, refused)
            deliveries[partition].remove(delivery)
            owned, later_ms = self._partitions[partition], now_ms + POSTPONED_MS
            postponed = replace(delivery.entry, due_ms=later_ms)
            await self._index.put(owned.key, [postponed], owned.progress.read_to)
        onward = [
            (partition, each, each.onward)
            for partition, planned in deliveries.items()
            for each in planned
            if each.onward is not None
        ]
        for partition, delivery, refused in await self._written_or_dead(onward):
            log.error("%s at %d: the schedule ends: %s", partition, delivery.entry.offset, refused)

    async def _written_or_dead(
        self, records: Sequence[tuple[TopicPartition, Delivery, ProducerRecord]]
    ) -> list[tuple[TopicPartition, Delivery, BrokerRefused]]:
        """Write the records or their dead letters; returns those for which neither works.

        A missing target is no fault of its records: they wait for it.
        """
        letters = []
        stay: list[tuple[TopicPartition, Delivery, BrokerRefused]] = []
        results = await self._sent([record for _, _, record in records])
        for (partition, delivery, record), result in zip(records, results, strict=True):
            owned = self._partitions[partition]
            if isinstance(result, MissingTopic):
                stay.append((partition, delivery, result))
            elif isinstance(result, BrokerRefused):
                letters.append((partition, delivery, _rejected(owned, record, result)))
            elif isinstance(result, RecordMetadata) and record.topic == partition.topic:
                owned.written_to = max(owned.written_to, result.offset)
        again = await self._sent([record for _, _, record in letters])
        for (partition, delivery, _), refused in zip(letters, again, strict=True):
            if isinstance(refused, BrokerRefused):
                stay.append((partition, delivery, refused))
        return stay

    async def _sent(
        self, records: Sequence[ProducerRecord]
    ) -> list[RecordMetadata | BrokerRefused | None]:
        """The result of each; a topic that cannot be written must not hold up the others."""
        missing = {
            name: refused
            for name in {each.topic for each in records}
            if (refused := await self._unusable(name)) is not None
        }
        results = iter(
            await self._producer.deliver(
                [each for each in records if each.topic not in missing], past_refused=True
            )
        )
        return [missing[each.topic] if each.topic in missing else next(results) for each in records]

    async def _unusable(self, topic: str) -> BrokerRefused | None:
        """Why the topic cannot be written, unless it can or that may pass soon."""
        now_ms = self._clock.now_ms()
        until_ms, known = self._refused.get(topic, (0, None))
        if now_ms < until_ms:
            return known
        self._refused.pop(topic, None)
        try:
            await self._client.retrying(
                lambda: self._client.topic(topic, create=True),
                retry_on=RETRIABLE,
                timeout_ms=CREATION_MS,
            )
        except BrokerRefused as error:
            if error.code not in UNUSABLE:
                return None
            is_missing = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused = MissingTopic(error.code, f"topic {topic}") if is_missing else error
            self._refused[topic] = now_ms + REFUSED_MS, refused
            return refused
        return None

    async def _commit(self, deliveries: Mapping[TopicPartition, Sequence[Delivery]]) -> None:
        state: list[ProducerRecord] = []
        floors: dict[TopicPartition, Offset] = {}
        for partition, done in deliveries.items():
            owned = self._partitions[partition]
            for each in done:
                if each.also_cancelled is not None:
                    owned.progress.stage(each.also_cancelled, Outcome.CANCELLED)
                owned.progress.stage(each.entry.offset, each.outcome)
            state += state_records(owned.key, owned.progress)
            floors[partition] = owned.progress.staged_floor()
        await self._producer.send(state)
        await self._producer.send_offsets(floors, self._consumer.group_metadata)
        await self._producer.commit()

    async def _trim(self) -> None:
        """Records before the floor are done: the topic need not keep them."""
        now_ms = self._clock.now_ms()
        if now_ms < self._trim_at_ms:
            return
        self._trim_at_ms, self._check_at_ms = now_ms + TRIM_MS, 0
        await self._check_topics()
        floors = {
            each.partition: each.progress.staged_floor() for each in self._partitions.values()
        }
        try:
            await delete_records(self._client, {each: at for each, at in floors.items() if at > 0})
        except KafkaError as error:
            log.warning("records that are done stay for now: %s", error)


def _written(
    owned: DelayPartition, record: Record, now_ms: int, *, same: bool
) -> tuple[ProducerRecord, ProducerRecord | None]:
    """What is written for a record that is due, and what its schedule goes on with."""
    route, partition = owned.route, owned.partition
    verdict = judge(record, partition, route, now_ms)
    if isinstance(verdict, Dead | Cancel):
        dead = verdict if isinstance(verdict, Dead) else Dead("a cancellation is not delivered")
        return _letter(owned, record, dead), None
    target = ProducerRecord(
        route.to,
        record.value,
        record.key,
        delivered_headers(record, partition, verdict),
        partition.partition if same else None,
        record.timestamp,
    )
    if not isinstance(verdict, Recur):
        return target, None
    onward = ProducerRecord(
        partition.topic,
        record.value,
        record.key,
        recurring_headers(record, verdict, now_ms),
        partition.partition,
        now_ms,
    )
    return target, onward


def _rejected(
    owned: DelayPartition, record: ProducerRecord, refused: BrokerRefused
) -> ProducerRecord:
    """The dead letter of a record that its target does not take."""
    origin = Record(-1, record.timestamp or 0, record.key, record.value, list(record.headers))
    return _letter(owned, origin, Dead(f"{record.topic} rejected it: {refused}"))


def _letter(owned: DelayPartition, record: Record, dead: Dead) -> ProducerRecord:
    return ProducerRecord(
        owned.route.dead_letters,
        record.value,
        record.key,
        dead_headers(record, owned.partition, owned.route, dead),
        None,
        record.timestamp,
    )
