"""confluent-kafka, the Python binding of librdkafka."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any, Literal, cast

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

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
from peers.process import PeerError
from penstock.client.address import Address
from penstock.errors import ErrorCode

_QUIET = 0
"""The level of its own log: a producer that is fenced on purpose should not log it."""

_OFFSETS: dict[int, Callable[[], OffsetSpec]] = {
    LATEST: OffsetSpec.latest,
    EARLIEST: OffsetSpec.earliest,
}


class LibrdkafkaClient:
    def __init__(
        self,
        bootstrap: str,
        group_protocol: Literal["classic", "consumer"] = "classic",
        strategy: str = "range,roundrobin",
    ) -> None:
        self._group_protocol, self._strategy = group_protocol, strategy
        self._bootstrap: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
        self._admin = AdminClient(self._bootstrap)
        self._producers: dict[tuple[Codec, Acks, bool], Producer] = {}

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        _only(self._admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        _only(self._admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=WAIT_S).topics)

    def partitions(self, topic: str) -> list[Partition]:
        described = _only(self._admin.describe_topics(TopicCollection([topic])))
        return [
            Partition(
                part.id,
                part.leader.id,
                [node.id for node in part.replicas],
                [node.id for node in part.isr],
            )
            for part in described.partitions
        ]

    def create_partitions(self, topic: str, count: int) -> None:
        _only(self._admin.create_partitions([NewPartitions(topic, count)]))

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = _only(self._admin.describe_configs([resource]))
        return {name: entry.value for name, entry in entries.items()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            _only(self._admin.alter_configs([resource]))  # deprecated, but still in use

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        entries = [
            *(
                ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET)
                for k, v in put.items()
            ),
            *(ConfigEntry(k, None, incremental_operation=AlterConfigOpType.DELETE) for k in delete),
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _only(self._admin.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        _only(self._admin.delete_records([TopicPartition(topic, partition, before)]))

    def addresses(self) -> list[Address]:
        with _refusals():
            described = self._admin.describe_cluster().result(WAIT_S)
        return [Address(node.host, node.port) for node in described.nodes]

    def cluster(self) -> Cluster:
        with _refusals():
            described = self._admin.describe_cluster().result(WAIT_S)
        return Cluster([node.id for node in described.nodes], described.controller.id)

    def offset(self, topic: str, partition: int, at: int) -> int:
        spec = _OFFSETS[at]() if at in _OFFSETS else OffsetSpec.for_timestamp(at)
        found = _only(self._admin.list_offsets({TopicPartition(topic, partition): spec}))
        offset: int = found.offset
        return offset

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        idempotent: bool = False,
    ) -> list[Placed]:
        producer = self._producer(codec, acks, idempotent)
        placed: dict[int, Placed] = {}
        refused: list[KafkaError] = []

        def delivered(place: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                refused.append(error)
            placed[place] = Placed(_known(message.partition()), _known(message.offset()))

        for place, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=-1 if record.partition is None else record.partition,
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
                on_delivery=partial(delivered, place),
            )
        assert producer.flush(WAIT_S) == 0
        for error in refused:
            _raise(error)
        return [placed[place] for place in range(len(records))]

    def fetch(
        self, topic: str, partition: int, *reads: tuple[int, int], reset: Reset = "none"
    ) -> list[list[Record]]:
        consumer = self._consumer("unused", "error" if reset == "none" else reset)
        try:
            consumer.assign([TopicPartition(topic, partition, reads[0][0])])
            found = [_read(consumer, reads[0][1])]
            for offset, count in reads[1:]:
                consumer.seek(TopicPartition(topic, partition, offset))
                found.append(_read(consumer, count))
            return found
        finally:
            consumer.close()

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "LibrdkafkaMember":
        consumer = self._consumer(group, "earliest", isolation)
        consumer.subscribe(list(topics))
        return LibrdkafkaMember(consumer)

    def group_type(self, group: str) -> str:
        """CLASSIC or CONSUMER: the group's protocol."""
        with _refusals():
            listed = self._admin.list_consumer_groups().result(WAIT_S)
        return next(str(each.type.name) for each in listed.valid if each.group_id == group)

    def transactor(self, transactional_id: str) -> "LibrdkafkaTransactor":
        producer = Producer(
            self._bootstrap
            | {"transactional.id": transactional_id, "linger.ms": 0, "log_level": _QUIET}
        )
        with _refusals():
            producer.init_transactions(WAIT_S)
        return LibrdkafkaTransactor(producer)

    def close(self) -> None:
        self._producers.clear()
        del self._admin  # otherwise it logs that the broker has ended

    def _producer(self, codec: Codec, acks: Acks, idempotent: bool) -> Producer:
        how = codec, acks, idempotent
        if how not in self._producers:
            self._producers[how] = Producer(
                self._bootstrap
                | {
                    "acks": acks,
                    "compression.type": codec,
                    "enable.idempotence": idempotent,
                    "linger.ms": 0,
                    # Java's partitioner; the default hashes keys by CRC-32.
                    "partitioner": "murmur2_random",
                }
            )
        return self._producers[how]

    def _consumer(
        self, group: str, reset: str, isolation: Isolation = "read_uncommitted"
    ) -> Consumer:
        # In the consumer protocol the broker decides these, and the client refuses them as
        # settings.
        own = {"heartbeat.interval.ms": 300, "partition.assignment.strategy": self._strategy}
        return Consumer(
            self._bootstrap
            | (own if self._group_protocol == "classic" else {})
            | {
                "group.id": group,
                "group.protocol": self._group_protocol,
                "auto.offset.reset": reset,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )


class LibrdkafkaTransactor:
    def __init__(self, producer: Producer) -> None:
        self._producer: Producer | None = producer

    def begin(self) -> None:
        self._made.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> None:
        with _refusals():
            for record in records:
                where = -1 if record.partition is None else record.partition
                self._made.produce(topic, record.value, record.key, partition=where)
        assert self._made.flush(WAIT_S) == 0

    def end(self, *, commits: bool) -> None:
        with _refusals():
            if commits:
                self._made.commit_transaction(WAIT_S)
            else:
                self._made.abort_transaction(WAIT_S)

    def close(self) -> None:
        self._producer = None  # it has no close(); dropping it is the only way

    @property
    def _made(self) -> Producer:
        assert self._producer is not None
        return self._producer


class LibrdkafkaMember:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def poll(self) -> Poll:
        messages = [each for each in self._consumer.consume(100, 0.1) if not _joins_again(each)]
        for message in messages:
            _raise(message.error())
        held = {(part.topic, part.partition) for part in self._consumer.assignment()}
        return Poll([_record(message) for message in messages], held)

    def commit(self, topic: str, partition: int, offset: int) -> None:
        with _refusals():
            self._consumer.commit(
                offsets=[TopicPartition(topic, partition, offset)], asynchronous=False
            )

    def leave(self) -> None:
        # In a thread, because no test timeout interrupts a call that waits inside the library.
        closing = Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(60)
        assert not closing.is_alive(), "librdkafka does not close its consumer"


def _joins_again(message: Message) -> bool:
    """Whether it reports a join that it repeats: a group that changes its protocol refuses one."""
    error = message.error()
    return error is not None and error.code() == KafkaError.REBALANCE_IN_PROGRESS


def _read(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        messages = consumer.consume(count - len(records), WAIT_S)
        assert messages, f"{len(records)} of {count} records came"
        for message in messages:
            _raise(message.error())
        records += map(_record, messages)
    return records


def _record(message: Message) -> Record:
    return Record(
        message.value(),
        message.key(),
        tuple(cast("list[tuple[str, bytes]]", message.headers() or [])),
        message.timestamp()[1],
        message.partition(),
        message.offset(),
    )


def _known(number: int | None) -> int:
    return -1 if number is None or number < 0 else number


def _raise(error: KafkaError | None) -> None:
    if error is None:
        return
    # With `auto.offset.reset=error` the application gets the broker's error under this name.
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise RefusedError(ErrorCode.OFFSET_OUT_OF_RANGE, error.str())
    if error.code() == KafkaError._FENCED:
        raise RefusedError(ErrorCode.PRODUCER_FENCED, error.str())
    if error.code() < 0:
        raise PeerError(error.str())  # the client's own error, not the broker's
    raise RefusedError(error.code(), error.str())


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaException as failed:
        _raise(failed.args[0])


def _only(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    with _refusals():
        return future.result(WAIT_S)
