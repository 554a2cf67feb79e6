"""aiokafka, on its own event loop in its own thread."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import (
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError, ProducerFenced

from clients.protocol import (
    EARLIEST,
    LATEST,
    WAIT_S,
    Acks,
    Cluster,
    Codec,
    Isolation,
    Partition,
    Placed,
    Poll,
    Record,
    RefusedError,
    Reset,
)
from penstock.errors import ErrorCode

T = TypeVar("T")


class AiokafkaClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._producers: dict[tuple[Codec, Acks, bool], AIOKafkaProducer] = {}
        self._admin = self._run(self._new_admin())

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))
        answer = self._run(self._admin.create_topics([new]))
        for _, code, text in answer.topic_errors:
            _check(code, text)

    def delete_topic(self, topic: str) -> None:
        answer = self._run(self._admin.delete_topics([topic]))
        for _, code in answer.topic_error_codes:
            _check(code)

    def topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def partitions(self, topic: str) -> list[Partition]:
        (described,) = self._run(self._admin.describe_topics([topic]))
        return [
            Partition(part["partition"], part["leader"], part["replicas"], part["isr"])
            for part in described["partitions"]
        ]

    def create_partitions(self, topic: str, count: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(count)}))

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._run(self._admin.describe_configs([resource]))
        ((code, text, _, _, entries),) = answer.resources
        _check(code, text)
        return {entry[0]: entry[1] for entry in entries}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        (answer,) = self._run(self._admin.alter_configs([resource]))
        for code, text, _, _ in answer.resources:
            _check(code, text)

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        where = TopicPartition(topic, partition)
        self._run(self._admin.delete_records({where: RecordsToDelete(before)}))

    def cluster(self) -> Cluster:
        described = self._run(self._admin.describe_cluster())
        brokers = [broker["node_id"] for broker in described["brokers"]]
        return Cluster(brokers, described["controller_id"])

    def offset(self, topic: str, partition: int, at: int) -> int:
        return self._run(self._offset(TopicPartition(topic, partition), at))

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        idempotent: bool = False,
    ) -> list[Placed]:
        return self._run(self._produce(topic, records, (codec, acks, idempotent)))

    def fetch(
        self, topic: str, partition: int, *reads: tuple[int, int], reset: Reset = "none"
    ) -> list[list[Record]]:
        return self._run(self._fetch(TopicPartition(topic, partition), reads, reset))

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "AiokafkaMember":
        return AiokafkaMember(self, self._run(self._joined(group, topics, isolation)))

    def transactor(self, transactional_id: str) -> "AiokafkaTransactor":
        return AiokafkaTransactor(self, self._run(self._transactional(transactional_id)))

    def close(self) -> None:
        for producer in self._producers.values():
            self._run(producer.stop())
        self._run(self._admin.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * WAIT_S)
        except BrokerResponseError as refused:
            raise RefusedError(refused.errno, str(refused)) from refused
        except ProducerFenced as fenced:
            # Both error codes of a fenced producer are this one exception.
            raise RefusedError(ErrorCode.PRODUCER_FENCED, str(fenced)) from fenced

    async def _new_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        return admin

    async def _producer(self, how: tuple[Codec, Acks, bool]) -> AIOKafkaProducer:
        if how not in self._producers:
            codec, acks, idempotent = how
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks=acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
            )
            await producer.start()
            self._producers[how] = producer
        return self._producers[how]

    async def _produce(
        self, topic: str, records: Sequence[Record], how: tuple[Codec, Acks, bool]
    ) -> list[Placed]:
        producer = await self._producer(how)
        sent = [
            await producer.send(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for record in records
        ]
        async with asyncio.timeout(WAIT_S):
            done = [await future for future in sent]
        # Without acks, nothing says where a record went.
        return [Placed(one.partition, one.offset) if one else Placed(-1, -1) for one in done]

    async def _transactional(self, transactional_id: str) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )
        await producer.start()
        return producer

    async def _consumer(
        self, group: str | None, reset: Reset, isolation: Isolation = "read_uncommitted"
    ) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            auto_offset_reset=reset,
            isolation_level=isolation,
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            heartbeat_interval_ms=300,
        )
        await consumer.start()
        return consumer

    async def _offset(self, where: TopicPartition, at: int) -> int:
        consumer = await self._consumer(None, "none")
        try:
            if at == EARLIEST:
                found: int = (await consumer.beginning_offsets([where]))[where]
            elif at == LATEST:
                found = (await consumer.end_offsets([where]))[where]
            else:
                at_or_after = (await consumer.offsets_for_times({where: at}))[where]
                found = -1 if at_or_after is None else at_or_after.offset
            return found
        finally:
            await consumer.stop()

    async def _fetch(
        self, where: TopicPartition, reads: Sequence[tuple[int, int]], reset: Reset
    ) -> list[list[Record]]:
        consumer = await self._consumer(None, reset)
        try:
            consumer.assign([where])
            found = []
            async with asyncio.timeout(WAIT_S):
                for offset, count in reads:
                    if offset < 0:
                        await consumer.seek_to_beginning(where)
                    else:
                        consumer.seek(where, offset)
                    found.append([_record(await consumer.getone()) for _ in range(count)])
            return found
        finally:
            await consumer.stop()

    async def _joined(
        self, group: str, topics: Sequence[str], isolation: Isolation
    ) -> AIOKafkaConsumer:
        consumer = await self._consumer(group, "earliest", isolation)
        consumer.subscribe(list(topics))
        return consumer


class AiokafkaTransactor:
    def __init__(self, client: AiokafkaClient, producer: AIOKafkaProducer) -> None:
        self._run, self._producer = client._run, producer

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, records: Sequence[Record]) -> None:
        for record in records:
            send = self._producer.send_and_wait
            self._run(send(topic, record.value, record.key, partition=record.partition))

    def end(self, *, commits: bool) -> None:
        if commits:
            self._run(self._producer.commit_transaction())
        else:
            self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())


class AiokafkaMember:
    def __init__(self, client: AiokafkaClient, consumer: AIOKafkaConsumer) -> None:
        self._run, self._consumer = client._run, consumer

    def poll(self) -> Poll:
        polled = self._run(self._consumer.getmany(timeout_ms=100))
        records = [_record(message) for messages in polled.values() for message in messages]
        held = {(part.topic, part.partition) for part in self._consumer.assignment()}
        return Poll(records, held)

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._run(self._consumer.commit({TopicPartition(topic, partition): offset}))

    def leave(self) -> None:
        self._run(self._consumer.stop())


def _record(message: Any) -> Record:
    return Record(
        message.value,
        message.key,
        tuple(message.headers),
        message.timestamp,
        message.partition,
        message.offset,
    )


def _check(code: int, text: str | None = None) -> None:
    if code:
        raise RefusedError(code, text or "")
