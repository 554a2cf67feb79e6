"""Moves the due records of one delay or retry topic, in its own transactions.

A transaction has the records, the progress and the group's offsets. A target that cannot be written
may leave a transaction that the coordinator cannot end until it can. So each route has its own
producer, and only that route waits.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.group_offsets import NOT_A_MEMBER
from penstock.client.membership.member import GroupMetadata
from penstock.client.record_sender import ProducedRecord, ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.clock import Clock
from penstock.errors import ErrorCode, KafkaError
from penstock.retry.counts import DelayCounts
from penstock.retry.delivery import EntryDelivery, rejected
from penstock.retry.due_records import DueRecords, PlannedDeliveries, fewer, more
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Outcome
from penstock.retry.state_topic import state_records
from penstock.retry.store.index import DueTimeIndex
from penstock.retry.topics import Topics, TopicWaits
from penstock.types import Offset, TopicPartition

TRANSACTION_TIMEOUT_MS: Final = 10_000
"""How long a killed instance may hold up its successor."""
POSTPONED_MS: Final = 60_000
WRITE_S: Final = 5.0
"""How long brokers may take for a write; other routes may have to wait as long."""
END_S: Final = 1.0
"""Time-out for ending a failed transaction; the next one ends what is left."""
HELD_MS: Final = (50, 200, 1_000, 5_000, 10_000)
"""Waits after the first failure, the second, and so on."""
AT_ONCE: Final = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})
"""Retried at once: the last transaction is ending. Other errors abort, and the route waits."""

log = logging.getLogger(__name__)


class RouteMover:
    """If `move` raises, it is unknown what was moved."""

    def __init__(
        self,
        client: Client,
        index: DueTimeIndex,
        topics: Topics,
        *,
        transactional_id: str,
        clock: Clock,
        counts: DelayCounts,
    ) -> None:
        self._client, self._index, self._topics = client, index, topics
        self._id, self._clock, self._counts = transactional_id, clock, counts
        self._due = DueRecords(client, index, topics, clock)
        self._producer = self._new_producer()
        self.failures = 0
        """Failed transactions since the last success."""

    def _new_producer(self) -> TransactionalProducer:
        return TransactionalProducer(
            self._client,
            self._id,
            timeout_ms=TRANSACTION_TIMEOUT_MS,
            create_topics=True,
            clock=self._clock,
        )

    async def init(self) -> None:
        """End the transaction that a former process left open, before anything waits for its end.

        If that takes long, its outcome is decided already; it only waits for partitions that others
        do not need.
        """
        try:
            async with asyncio.timeout(WRITE_S):
                await self._producer.init()
        except TimeoutError:
            log.warning("the last transaction of %s is not ended yet", self._id)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(END_S):
                await self._producer.close()
        except TimeoutError:
            log.warning("the last transaction of %s is left to its timeout", self._id)

    async def move(self, partitions: Sequence[DelayPartition], member: GroupMetadata) -> int:
        """Move due records, up to the size limit of a transaction. Returns how many."""
        now_ms = self._clock.now_ms()
        planned: list[PlannedDeliveries] = []
        try:
            planned = await self._due.planned(partitions, now_ms)
            if not planned:
                return 0
            await self._begin()
            await self._write(planned, now_ms)
            await self._commit(planned, member)
        except BrokerRefused as error:
            is_held = isinstance(error, TopicWaits)
            if error.code not in NOT_A_MEMBER and not is_held:
                raise
            await self._abort(planned)
            if is_held:  # else the partitions have moved: the next poll shows it
                self._hold(partitions, error)
            return 0
        if self.failures:
            log.info("records of %s go on", planned[0].owned.route.topic)
            self.failures = 0
        await self._forget_moved(planned)
        return sum(len(each.deliveries) for each in planned)

    async def write_progress(
        self, partitions: Sequence[DelayPartition], member: GroupMetadata
    ) -> None:
        """Write the staged progress of these partitions, in a separate transaction."""
        await self._begin()
        await self._commit([PlannedDeliveries(each, []) for each in partitions], member)
        for each in partitions:
            each.progress.commit()

    async def _forget_moved(self, planned: Sequence[PlannedDeliveries]) -> None:
        for owned, done in planned:
            owned.progress.commit()
            gone = [each.entry.offset for each in done]
            gone += [each.also_cancelled for each in done if each.also_cancelled is not None]
            owned.batch = more(owned.batch)
            await self._index.remove(owned.stored, gone)
            owned.next_due_ms = await self._index.next_due_ms(owned.stored)
            self._count(owned.route.topic, done)

    async def _abort(self, planned: Sequence[PlannedDeliveries]) -> None:
        for owned, _ in planned:
            owned.progress.abort()
        if not self._producer.in_transaction:
            return
        try:
            async with asyncio.timeout(END_S):
                await self._producer.abort()
        except (KafkaError, TimeoutError):
            self._producer = self._new_producer()  # its first step ends what is open

    def _hold(self, partitions: Sequence[DelayPartition], error: BrokerRefused) -> None:
        """The route waits: a leader may move, or a topic may be created again. It goes on with
        fewer records, because so many may exceed the time-out every time.
        """
        topic = partitions[0].route.topic
        if self.failures == 0:
            log.warning("records of %s wait: %s", topic, error)
        held_ms = HELD_MS[min(self.failures, len(HELD_MS) - 1)]
        self.failures += 1
        until_ms = self._clock.monotonic_ms() + held_ms
        for each in partitions:
            each.held_until_ms = max(each.held_until_ms, until_ms)
            each.batch = fewer(each.batch)
        self._client.forget()
        self._topics.is_stale = True

    async def _begin(self) -> None:
        about = f"the last transaction of {self._id}"
        try:
            async with asyncio.timeout(END_S):
                await self._producer.begin()
        except TimeoutError:
            code = ErrorCode.CONCURRENT_TRANSACTIONS
            raise TopicWaits(code, about, "it is not ended yet") from None

    async def _write(self, planned: Sequence[PlannedDeliveries], now_ms: int) -> None:
        """Write the records; those that a broker rejects become dead letters.

        A record that neither the target nor the dead-letter topic takes is postponed, and its
        schedule with it.
        """
        everything = [
            (owned, each, each.record)
            for owned, due in planned
            for each in due
            if each.record is not None
        ]
        done = {owned.partition: due for owned, due in planned}
        for owned, delivery, refused in await self._written_or_dead(everything):
            log.error("%s at %d stays: %s", owned.partition, delivery.entry.offset, refused)
            done[owned.partition].remove(delivery)
            postponed = delivery.entry._replace(due_ms=now_ms + POSTPONED_MS)
            read_to = owned.progress.read_to
            await self._index.put(owned.stored, [postponed], since=read_to, to=read_to)
            self._counts.postponed[owned.route.topic] += 1
        onward = [
            (owned, each, each.onward)
            for owned, due in planned
            for each in due
            if each.onward is not None
        ]
        for owned, delivery, refused in await self._written_or_dead(onward):
            offset = delivery.entry.offset
            log.error("%s at %d: the schedule ends: %s", owned.partition, offset, refused)

    async def _written_or_dead(
        self, records: Sequence[tuple[DelayPartition, EntryDelivery, ProducerRecord]]
    ) -> list[tuple[DelayPartition, EntryDelivery, BrokerRefused]]:
        """Write the records or their dead letters; returns those for which both fail."""
        letters = []
        stay: list[tuple[DelayPartition, EntryDelivery, BrokerRefused]] = []
        results = await self._sent([record for _, _, record in records])
        for (owned, delivery, record), result in zip(records, results, strict=True):
            if isinstance(result, TopicWaits):
                stay.append((owned, delivery, result))
            elif isinstance(result, BrokerRefused):
                dead = rejected(owned, delivery.entry, record, result)
                letters.append((owned, delivery, dead))
            elif isinstance(result, ProducedRecord) and record.topic == owned.partition.topic:
                owned.written_to = max(owned.written_to, result.offset)
        again = await self._sent([record for _, _, record in letters])
        for (owned, delivery, _), refused in zip(letters, again, strict=True):
            delivery.is_dead = True
            if isinstance(refused, BrokerRefused):
                stay.append((owned, delivery, refused))
        return stay

    async def _sent(
        self, records: Sequence[ProducerRecord]
    ) -> list[ProducedRecord | BrokerRefused | None]:
        """The result of each record. Topics known to be missing do not hold up the others.

        If that is not known yet, the whole transaction fails, and the next check finds out.
        """
        if not records:
            return []
        unusable: dict[tuple[str, int | None], BrokerRefused] = {}
        for at in {(each.topic, each.partition) for each in records}:
            refused = await self._topics.refusal(at[0]) or self._topics.leaderless(*at)
            if refused is not None:
                unusable[at] = refused
        usable = [each for each in records if (each.topic, each.partition) not in unusable]
        about = "records that are due"
        try:
            async with asyncio.timeout(WRITE_S):
                written = await self._producer.deliver(usable, past_refused=True, retry_on=AT_ONCE)
        except TimeoutError:
            code = ErrorCode.REQUEST_TIMED_OUT
            raise TopicWaits(code, about, f"no response within {WRITE_S:g} s") from None
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            raise TopicWaits(error.code, about, str(error)) from None
        results = iter(written)
        return [unusable.get((each.topic, each.partition)) or next(results) for each in records]

    async def _commit(self, planned: Sequence[PlannedDeliveries], member: GroupMetadata) -> None:
        state: list[ProducerRecord] = []
        floors: dict[TopicPartition, Offset] = {}
        for owned, done in planned:
            for each in done:
                if each.also_cancelled is not None:
                    owned.progress.stage(each.also_cancelled, Outcome.CANCELLED)
                owned.progress.stage(each.entry.offset, each.outcome)
            state += state_records(owned.key, owned.progress)
            floors[owned.partition] = owned.progress.staged_floor()
        await self._producer.send(state)
        await self._producer.send_offsets(floors, member)
        await self._producer.commit()

    def _count(self, topic: str, done: Sequence[EntryDelivery]) -> None:
        now_ms = self._clock.now_ms()
        for each in done:
            if each.outcome is Outcome.CANCELLED or each.also_cancelled is not None:
                self._counts.cancelled[topic] += 1
            elif each.is_dead:
                self._counts.dead[topic] += 1
            elif each.record is not None:
                self._counts.delivered[topic] += 1
                self._counts.late(now_ms - each.entry.due_ms)
