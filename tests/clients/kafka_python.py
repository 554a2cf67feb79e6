"""kafka-python, which has its own protocol code."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import BrokerResponseError
from kafka.structs import OffsetAndMetadata

from clients.protocol import (
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


class KafkaPythonClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._producers: dict[tuple[Codec, Acks, bool], KafkaProducer] = {}

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
        with _refusals():
            self._admin.create_topics({topic: new})

    def delete_topic(self, topic: str) -> None:
        with _refusals():
            self._admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def partitions(self, topic: str) -> list[Partition]:
        (described,) = self._admin.describe_topics([topic])
        return [
            Partition(
                part["partition_index"], part["leader_id"], part["replica_nodes"], part["isr_nodes"]
            )
            for part in described["partitions"]
        ]

    def create_partitions(self, topic: str, count: int) -> None:
        with _refusals():
            self._admin.create_partitions({topic: count})

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource("topic", topic)
        described = self._admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        raise NotImplementedError

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        changes = {name: ("SET", value) for name, value in put.items()}
        drops = dict.fromkeys(delete, ("DELETE", None))
        answer = self._admin.alter_configs([ConfigResource("topic", topic, changes | drops)])
        text = answer["topic"][topic]
        if text != "OK":
            # This is the only call that reports an error as text.
            code = re.match(r"\[Error (-?\d+)\]", text)
            assert code, text
            raise RefusedError(int(code[1]), text)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        with _refusals():
            self._admin.delete_records({TopicPartition(topic, partition): before})

    def cluster(self) -> Cluster:
        described = self._admin.describe_cluster()
        brokers = [broker["broker_id"] for broker in described["brokers"]]
        return Cluster(brokers, described["controller_id"])

    def offset(self, topic: str, partition: int, at: int) -> int:
        where = TopicPartition(topic, partition)
        with _refusals():
            found: int = self._admin.list_partition_offsets({where: at})[where].offset
        return found

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
        sent = [
            producer.send(
                topic,
                record.value,
                record.key,
                list(record.headers),
                record.partition,
                record.timestamp_ms,
            )
            for record in records
        ]
        producer.flush(WAIT_S)
        with _refusals():
            done = [future.get(WAIT_S) for future in sent]
        return [Placed(one.partition, one.offset) for one in done]

    def fetch(
        self, topic: str, partition: int, *reads: tuple[int, int], reset: Reset = "none"
    ) -> list[list[Record]]:
        where = TopicPartition(topic, partition)
        consumer = self._consumer(None, reset)
        try:
            consumer.assign([where])
            found = []
            for offset, count in reads:
                if offset < 0:
                    consumer.seek_to_beginning(where)
                else:
                    consumer.seek(where, offset)
                with _refusals():
                    found.append(_read(consumer, count))
            return found
        finally:
            consumer.close()

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "KafkaPythonMember":
        consumer = self._consumer(group, "earliest", isolation)
        consumer.subscribe(list(topics))
        return KafkaPythonMember(consumer)

    def transactor(self, transactional_id: str) -> "KafkaPythonTransactor":
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )
        with _refusals():
            producer.init_transactions()
        return KafkaPythonTransactor(producer)

    def close(self) -> None:
        self._admin.close()
        for producer in self._producers.values():
            producer.close()

    def _producer(self, codec: Codec, acks: Acks, idempotent: bool) -> KafkaProducer:
        how = codec, acks, idempotent
        if how not in self._producers:
            self._producers[how] = KafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks=acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
            )
        return self._producers[how]

    def _consumer(
        self, group: str | None, reset: Reset, isolation: Isolation = "read_uncommitted"
    ) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            auto_offset_reset=reset,
            isolation_level=isolation,
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            heartbeat_interval_ms=300,
        )


class KafkaPythonTransactor:
    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> None:
        send = self._producer.send
        sent = [send(topic, one.value, one.key, partition=one.partition) for one in records]
        with _refusals():
            for future in sent:
                future.get(WAIT_S)

    def end(self, *, commits: bool) -> None:
        with _refusals():
            if commits:
                self._producer.commit_transaction()
            else:
                self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


class KafkaPythonMember:
    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def poll(self) -> Poll:
        polled = self._consumer.poll(timeout_ms=100)
        records = [_record(message) for messages in polled.values() for message in messages]
        held = {(part.topic, part.partition) for part in self._consumer.assignment()}
        return Poll(records, held)

    def commit(self, topic: str, partition: int, offset: int) -> None:
        where = TopicPartition(topic, partition)
        with _refusals():
            self._consumer.commit({where: OffsetAndMetadata(offset, "", -1)})

    def leave(self) -> None:
        self._consumer.close(autocommit=False)


def _read(consumer: KafkaConsumer, count: int) -> list[Record]:
    records: list[Record] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(records) < count:
        assert time.monotonic() < deadline_s, f"{len(records)} of {count} records came"
        polled = consumer.poll(timeout_ms=500, max_records=count - len(records))
        records += [_record(message) for messages in polled.values() for message in messages]
    return records


def _record(message: Any) -> Record:
    return Record(
        message.value,
        message.key,
        tuple(message.headers),
        message.timestamp,
        message.partition,
        message.offset,
    )


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as refused:
        raise RefusedError(refused.errno, str(refused)) from refused
