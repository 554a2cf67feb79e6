"""A broker with a first topic: start it, write to it, read from it, and keep serving.

Run it as python examples/quickstart.py. The data is in ./penstock-data; stop it with Ctrl-C.
"""

import os
import signal
import subprocess
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "quickstart"
RECORDS = 1000


def main() -> int:
    port = os.environ.get("PORT", "9092")
    command = [sys.executable, "-m", "penstock", "serve", "--port", port, "--log-level", "warning"]
    started = time.perf_counter()
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: broker.terminate())
    assert broker.stdout is not None
    ready = broker.stdout.readline()
    if not ready.startswith("ready "):
        return broker.wait()  # it has said why
    bootstrap = ready.split()[1]
    print(f"Penstock is ready at {bootstrap} after {time.perf_counter() - started:.2f} s")

    create_topic(bootstrap)
    produce(bootstrap)
    print(f"read back {consume(bootstrap)} records from topic {TOPIC!r}")
    print(
        f"""
Connect any Kafka client to {bootstrap}, for example from Python:

    from confluent_kafka import Producer
    producer = Producer({{"bootstrap.servers": "{bootstrap}"}})
    producer.produce("{TOPIC}", b"hello")
    producer.flush()

Serving until Ctrl-C ...""",
        flush=True,
    )
    return broker.wait()


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(TOPIC, num_partitions=3)])[TOPIC].result(10)
        print(f"created topic {TOPIC!r} with 3 partitions")
    except KafkaException as error:
        print(f"topic {TOPIC!r}: {error.args[0].str()}")


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    began = time.perf_counter()
    for number in range(RECORDS):
        producer.produce(TOPIC, f"record {number}", key=f"key {number % 10}")
    left = producer.flush(30)
    took = time.perf_counter() - began
    print(f"produced {RECORDS - left} records in {took:.2f} s, all acknowledged")


def consume(bootstrap: str) -> int:
    """Read every partition from its start to its end; no group is needed for that."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    partitions = [TopicPartition(TOPIC, index) for index in range(3)]
    ends = {p.partition: consumer.get_watermark_offsets(p, timeout=10)[1] for p in partitions}
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in ends])
    count, deadline = 0, time.monotonic() + 30
    while count < sum(ends.values()) and time.monotonic() < deadline:
        count += sum(not message.error() for message in consumer.consume(500, 1))
    consumer.close()
    return count


if __name__ == "__main__":
    sys.exit(main())
