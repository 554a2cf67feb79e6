"""Copies with confluent-kafka; see `job`."""

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from clients.copying.job import (
    HEARTBEAT_MS,
    RECORDS,
    SESSION_MS,
    WAIT_S,
    Batch,
    Ending,
    Job,
    copied,
    job,
)


def copy(work: Job, messages: list[Message], consumer: Consumer, producer: Producer) -> None:
    batch = Batch(*((message.partition() or 0, message.offset() or 0) for message in messages))
    producer.begin_transaction()
    try:
        for message in messages:
            value = copied(message.value())
            producer.produce(work.target, value, partition=message.partition() or 0)
        positions = [TopicPartition(work.source, at, end) for at, end in batch.nexts.items()]
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, group, WAIT_S)
        if not work.aborts():
            producer.commit_transaction(WAIT_S)
            return
        producer.flush(WAIT_S)
    except KafkaException as failed:
        if not failed.args[0].txn_requires_abort():
            raise
    producer.abort_transaction(WAIT_S)
    held = {part.partition for part in consumer.assignment()}
    for at, start in batch.starts.items():
        if at in held:
            consumer.seek(TopicPartition(work.source, at, start))


def main() -> None:
    work, ending = job(), Ending()
    consumer = Consumer(
        {
            "bootstrap.servers": work.bootstrap,
            "group.id": work.group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
    )
    producer = Producer(
        {"bootstrap.servers": work.bootstrap, "transactional.id": work.transactional_id}
    )
    producer.init_transactions(WAIT_S)
    consumer.subscribe([work.source])
    while not ending:
        messages = consumer.consume(RECORDS, 0.1)
        good = [message for message in messages if message.error() is None]
        if good:
            copy(work, good, consumer, producer)
    consumer.close()


if __name__ == "__main__":
    main()
