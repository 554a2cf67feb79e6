"""The topic `_schemas`: every instance follows it, and the elected instance writes it.

Writes are transactions with one transactional id. A newly elected instance first fences earlier
writers and reads to the end, so that no id is assigned twice, even if an old writer wakes up later.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import ProducerRecord
from penstock.client.state_replicas import state_replicas
from penstock.client.transactional_producer import TransactionalProducer
from penstock.config.resource_type import ConfigResourceType
from penstock.counted import counted
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.registry.changes import kept_last_id
from penstock.registry.records import RegistryRecord, UnreadableRecord, read_record
from penstock.registry.state import RegistryState
from penstock.types import Offset, TopicPartition

RETRY_S: Final = 0.5
CATCH_UP_S: Final = 30.0

logger = logging.getLogger(__name__)


async def create_schemas_topic(client: Client, name: str) -> None:
    """Create the topic unless it exists. A topic whose settings would lose schemas is refused."""
    topic = NewTopic(
        name=name,
        partitions=1,
        replication_factor=await state_replicas(client),
        configs={"cleanup.policy": "compact"},
    )
    try:
        await create_topic(client, topic)
    except BrokerRefused as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    found = await client.retrying(lambda: client.topic(name), retry_on=RETRIABLE)
    if len(found.partitions) != 1:
        raise ConfigError(
            f"topic {name} has {counted(len(found.partitions), 'partition')}, must have one"
        )
    policy = None
    for wait_s in (0.1, 0.2, 0.4, 0.8, 1.6, 0):  # a new topic's settings may reach a broker late
        configs = await describe_configs(client, Resource(ConfigResourceType.TOPIC, name))
        policy = configs["cleanup.policy"].value
        if policy == "compact":
            return
        await asyncio.sleep(wait_s)
    raise ConfigError(
        f"topic {name} has cleanup.policy={policy}, which deletes schemas; it must be compact"
    )


class SchemaLog:
    """The state, kept up to date by `follow`, and the writer on the elected instance."""

    def __init__(self, client: Client, topic: str) -> None:
        self._client, self._reading = client, client.twin()
        self._partition = TopicPartition(topic, 0)
        self._producer: TransactionalProducer | None = None
        self._moved = asyncio.Condition()
        self.changing = asyncio.Lock()
        """Held while records are replayed, and while a thread reads the state."""
        self.state = RegistryState()
        self.applied = Offset(0)
        """The next offset to replay."""
        self.is_loaded = False

    @property
    def is_writer(self) -> bool:
        return self._producer is not None

    async def follow(self) -> None:
        """Replay the topic until cancelled."""
        try:
            while True:
                try:
                    await self._follow()
                except KafkaError as error:
                    logger.warning("%s: reading again from its start: %s", self._partition, error)
                    self._reading.forget()
                    await asyncio.sleep(RETRY_S)
        finally:
            await self._reading.close()

    async def caught_up(self, offset: Offset) -> None:
        """Wait until all records before this offset are replayed."""
        async with asyncio.timeout(CATCH_UP_S), self._moved:
            await self._moved.wait_for(lambda: self.is_loaded and self.applied >= offset)

    async def read_to_end(self) -> None:
        """Wait until everything committed so far is replayed."""
        wanted = {self._partition: LATEST}
        end = await list_offsets(self._client, wanted, isolation=IsolationLevel.READ_COMMITTED)
        await self.caught_up(end[self._partition].offset)

    async def take_over(self) -> None:
        """Become the only writer, after replaying everything that others wrote."""
        self.give_up()
        producer = TransactionalProducer(
            self._client, f"penstock-registry-{self._partition.topic}", timeout_ms=10_000
        )
        await producer.init()  # fences all other instances
        end = await list_offsets(self._client, {self._partition: LATEST})
        await self.caught_up(end[self._partition].offset)
        # Tests that writing works, and protects the last id from compaction.
        await self._write(producer, [kept_last_id(self.state)])
        self._producer = producer

    def give_up(self) -> None:
        """Stop writing. The next writer completes or aborts an open transaction."""
        self._producer = None

    async def append(self, records: Sequence[RegistryRecord]) -> Offset:
        """Write the records atomically and replay them; returns the offset after them."""
        producer = self._producer
        assert producer is not None, "only the elected instance writes"
        try:
            return await self._write(producer, records)
        except BaseException:
            # It is unknown whether the records were written: write nothing more before the log is
            # read to its end.
            self.give_up()
            raise

    async def _write(
        self, producer: TransactionalProducer, records: Iterable[RegistryRecord]
    ) -> Offset:
        async with producer.transaction():
            written = await producer.send(
                ProducerRecord(self._partition.topic, value, key=key, partition=0)
                for key, value in (each.encoded() for each in records)
            )
        end = Offset(written[-1].offset + 1)
        await self.caught_up(end)
        return end

    async def _follow(self) -> None:
        starts = await list_offsets(self._reading, {self._partition: EARLIEST})
        ends = await list_offsets(self._reading, {self._partition: LATEST})
        start, end = starts[self._partition].offset, ends[self._partition].offset
        topic = await self._reading.topic(self._partition.topic)
        fresh = RegistryState()
        async with SimpleConsumer(
            self._reading, {self._partition: start}, isolation=IsolationLevel.READ_COMMITTED
        ) as consumer:
            consumer.ids[self._partition.topic] = topic.id
            # Requests use the former state until the new one is complete.
            while consumer.positions[self._partition] < end:
                self._replay(fresh, await consumer.poll())
            async with self.changing:
                self.state = fresh
                await self._advance(consumer)
            while True:
                found = await consumer.poll()
                async with self.changing:
                    self._replay(self.state, found)
                    await self._advance(consumer)

    async def _advance(self, consumer: SimpleConsumer) -> None:
        async with self._moved:
            self.applied, self.is_loaded = consumer.positions[self._partition], True
            self._moved.notify_all()

    def _replay(self, state: RegistryState, found: Iterable[ConsumedRecord]) -> None:
        for each in found:
            try:
                state.replay(read_record(each.record.key, each.record.value))
            except UnreadableRecord as error:
                at = f"{self._partition} offset {each.record.offset}"
                logger.warning("%s is not understood, and has no effect: %s", at, error)
