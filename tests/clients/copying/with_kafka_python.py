"""Copies with kafka-python; see `job`."""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CommitFailedError
from kafka.structs import OffsetAndMetadata

from clients.copying.job import (
    HEARTBEAT_MS,
    RECORDS,
    SESSION_MS,
    Batch,
    Ending,
    Job,
    copied,
    job,
)


def copy(work: Job, messages: list[Any], consumer: KafkaConsumer, producer: KafkaProducer) -> None:
    batch = Batch(*((message.partition, message.offset) for message in messages))
    producer.begin_transaction()
    try:
        for message in messages:
            producer.send(work.target, copied(message.value), partition=message.partition)
        positions = {
            TopicPartition(work.source, at): OffsetAndMetadata(end, "", -1)
            for at, end in batch.nexts.items()
        }
        producer.send_offsets_to_transaction(positions, consumer.group_metadata())
        if not work.aborts():
            producer.commit_transaction()
            return
        producer.flush()
    except CommitFailedError:
        pass  # the group continued without this member
    producer.abort_transaction()
    for at, start in batch.starts.items():
        where = TopicPartition(work.source, at)
        if where in consumer.assignment():
            consumer.seek(where, start)


def main() -> None:
    work, ending = job(), Ending()
    producer = KafkaProducer(
        bootstrap_servers=work.bootstrap, transactional_id=work.transactional_id
    )
    producer.init_transactions()
    consumer = KafkaConsumer(
        work.source,
        bootstrap_servers=work.bootstrap,
        group_id=work.group,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        # Sometimes it does not rejoin when it should; the group then continues without it.
        max_poll_interval_ms=2 * SESSION_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
    )
    while not ending:
        polled = consumer.poll(timeout_ms=100, max_records=RECORDS)
        if polled:
            copy(work, [one for some in polled.values() for one in some], consumer, producer)
    consumer.close(autocommit=False)
    producer.close()


if __name__ == "__main__":
    main()
