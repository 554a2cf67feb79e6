"""A cluster of three brokers under load: throughput and CPU, latency, many partitions."""

import time
from threading import Event, Thread

from bench.cluster_subject import CLIENT, WAIT_S, Subject
from bench.process import cpu_s, touch_memory
from confluent_kafka import Consumer, Producer, TopicPartition

from peers.process import PeerError

RECORD = b"x" * 1000
WARM_UP_RECORDS = 100
MB = 1_000_000


class Writing:
    """Produces 1 KB records to three partitions with acks=all.

    All rounds write to the same topic, so that no round pays for new logs.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject, self._topic = subject, subject.topic(3)
        self._producer = subject.producer(**{"linger.ms": 5, "batch.size": MB})
        write(self._producer, self._topic, 20)  # connects, and fetches the topic's metadata

    def round(self, megabytes: int) -> dict[str, float]:
        # The host backs free memory slowly at its first touch, and takes it back when it lies idle:
        # a cluster that runs first, or after a pause, would seem slower because of its page cache.
        touch_memory(3 * megabytes * MB)
        pids = self._subject.pids
        cpu, began_s = cpu_s(pids), time.monotonic()
        written = write(self._producer, self._topic, megabytes)
        took_s, used_s = time.monotonic() - began_s, cpu_s(pids) - cpu
        return {"MB/s": written / took_s / MB, "CPU s per GB": used_s / written * 1e9}


def write(producer: Producer, topic: str, megabytes: int) -> int:
    failed: list[object] = []

    def reported(error: object, _: object) -> None:
        if error:
            failed.append(error)

    for number in range(megabytes * 1000):
        while True:
            try:
                producer.produce(topic, RECORD, partition=number // 500 % 3, on_delivery=reported)
            except BufferError:
                producer.poll(0.05)
            else:
                break
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(WAIT_S)
    if failed:
        raise PeerError(f"not every record was written: {failed[0]}")
    return megabytes * 1000 * len(RECORD)


def end_to_end(subject: Subject, seconds: float) -> dict[str, float]:
    """Latency from `produce` to the consumer, with one record every 10 ms."""
    topic = subject.topic()
    consumer = Consumer(
        {"bootstrap.servers": subject.brokers.bootstrap, "group.id": "bench", **CLIENT}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer, took_ms, done = subject.producer(**{"linger.ms": 0}), list[float](), Event()

    def read() -> None:
        while not done.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                sent_s = float((message.value() or b"0").decode())
                took_ms.append((time.monotonic() - sent_s) * 1000)

    reader = Thread(target=read)
    reader.start()
    sent, deadline_s = 0, time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        producer.produce(topic, f"{time.monotonic()}".encode())
        producer.poll(0.01)
        sent += 1
    producer.flush(WAIT_S)
    done.wait(0.5)
    done.set()
    reader.join()
    consumer.close()
    if len(took_ms) < sent:
        raise PeerError(f"{sent - len(took_ms)} of {sent} records did not arrive")
    ordered = sorted(took_ms[WARM_UP_RECORDS:])
    return {
        "p50 ms": ordered[len(ordered) // 2],
        "p99 ms": ordered[int(len(ordered) * 0.99)],
    }


def many_partitions(subject: Subject, partitions: int) -> float:
    """Seconds until all partitions were created and each has taken a record."""
    began_s = time.monotonic()
    topic = subject.topic(partitions)
    producer, reported = subject.producer(**{"linger.ms": 0}), list[object]()
    for each in range(partitions):
        producer.produce(topic, b"x", partition=each, on_delivery=lambda e, _: reported.append(e))
    producer.flush(WAIT_S)
    if reported != [None] * partitions:
        raise PeerError("not every partition took its record")
    return time.monotonic() - began_s
