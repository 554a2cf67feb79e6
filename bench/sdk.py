"""The SDK beside bare confluent-kafka: python -m bench sdk [--records N] [--rounds N] [--out FILE]

Both do the same work: JSON of 100 bytes, keys, a delivery report for each record; an error check
and JSON for each record read. Figures are the client process's CPU time, which other programs
disturb less than they disturb the clock. Rounds are interleaved; figures are medians.

The parallel consumer: 100 workers, 50 ms of waiting for each record; ideal is 2,000 records/s.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from uuid import uuid4

import confluent_kafka
import msgspec
from bench.interpreter import about
from bench.report import is_missed

from peers.penstock import PenstockBroker
from penstock.sdk import (
    AsyncioPool,
    Consumer,
    Json,
    ParallelConsumer,
    Producer,
    Record,
    ThreadPool,
)

WORKERS = 100
WAIT_S = 0.05
IDEAL = WORKERS / WAIT_S
ORDER = {"id": 123456, "item": "a thing of some length", "cents": 1999, "note": "x" * 30}
AIM = "<= 1.15"
PARALLEL_AIM = ">= 0.9"
Figure = tuple[str, float, str]
"""Name, value and aim."""


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also write the figures to this file, as JSON")
    args = parser.parse_args(argv)
    described, found = about(), list[Figure]()
    with PenstockBroker("--set", "group.initial.rebalance.delay.ms=0") as broker:
        for measured in (beside_bare(broker.bootstrap, args), parallels(broker.bootstrap)):
            for figure, value, aim in measured:
                missed = ", missed" if is_missed(value, aim) else ""
                print(f"{figure}: {value:,.2f}" + (f" (aim: {aim}{missed})" if aim else ""))
                found.append((figure, value, aim))
    if args.out:
        figures = {"about": described, "rounds": args.rounds, "figures": found}
        args.out.write_text(json.dumps(figures, indent=1) + "\n")


def beside_bare(bootstrap: str, args: argparse.Namespace) -> Iterator[Figure]:
    subjects: dict[str, tuple[Callable[[str, str, int], None], ...]] = {
        "produce": (bare_produce, sdk_produce),
        "consume": (bare_consume, sdk_consume),
    }
    topics: list[str] = []
    for name, pair in subjects.items():
        figures: tuple[list[float], ...] = ([], [])
        for at in range(args.rounds + 1):  # the first round warms up
            for each, run in enumerate(pair):
                topic = f"orders-{at}-{each}" if name == "produce" else topics[0]
                topics.append(topic)
                began_s = time.process_time()
                run(bootstrap, topic, args.records)
                if at:
                    figures[each].append((time.process_time() - began_s) / args.records * 1e6)
        bare, ours = (median(each) for each in figures)
        yield f"{name}, bare confluent-kafka, CPU us per record", bare, ""
        yield f"{name}, SDK, CPU us per record", ours, ""
        yield f"{name}, SDK by bare", ours / bare, AIM


def parallels(bootstrap: str) -> Iterator[Figure]:
    for kind in ("threads", "asyncio"):
        rate = parallel(bootstrap, kind)
        name = f"{WORKERS} workers that wait {WAIT_S * 1000:.0f} ms, {kind}"
        yield f"{name}, records/s", rate, ""
        yield f"{name}, by the ideal {IDEAL:,.0f}", rate / IDEAL, PARALLEL_AIM


def bare_produce(bootstrap: str, topic: str, count: int) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
        }
    )
    failed: list[object] = []

    def reported(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    encode = msgspec.json.Encoder().encode
    for number in range(count):
        while True:
            try:
                producer.produce(
                    topic, encode(ORDER), b"%d" % (number % 1000), on_delivery=reported
                )
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    producer.flush()
    assert not failed


def sdk_produce(bootstrap: str, topic: str, count: int) -> None:
    with Producer({"bootstrap.servers": bootstrap}, value=Json()) as producer:
        for number in range(count):
            producer.send(topic, ORDER, key=b"%d" % (number % 1000))


def bare_consume(bootstrap: str, topic: str, count: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    decode = msgspec.json.Decoder().decode
    seen = 0
    while seen < count:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            raise confluent_kafka.KafkaException(message.error())
        decode(message.value() or b"")
        message.key(), message.offset(), message.timestamp(), message.headers()
        seen += 1
    consumer.close()


def sdk_consume(bootstrap: str, topic: str, count: int) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": uuid4().hex,
        "auto.offset.reset": "earliest",
    }
    with Consumer(config, [topic], value=Json()) as consumer:
        for seen, record in enumerate(consumer, 1):
            record.key, record.offset, record.timestamp_ms, record.headers  # noqa: B018
            if seen == count:
                break


def parallel(bootstrap: str, kind: str, seconds: float = 6) -> float:
    """Records per second, measured after a second of warm-up."""
    topic, count = f"parallel-{kind}", int(IDEAL * (seconds + 2))
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(count):
            producer.send(topic, b"x", key=b"%d" % number)
    times: list[float] = []

    def handle(_: Record[bytes, bytes]) -> None:
        time.sleep(WAIT_S)
        done()

    async def handle_later(_: Record[bytes, bytes]) -> None:
        await asyncio.sleep(WAIT_S)
        done()

    def done() -> None:
        times.append(time.monotonic())
        if len(times) >= count:
            consumer.stop()

    config = {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }
    pool = ThreadPool(handle, WORKERS) if kind == "threads" else AsyncioPool(handle_later, WORKERS)
    consumer: ParallelConsumer[bytes, bytes] = ParallelConsumer(config, [topic], pool)
    consumer.run()
    begin, end = times[0] + 1, times[-1] - 0.5
    return sum(begin <= each < end for each in times) / (end - begin)
