"""The time that the console's search takes: python -m bench search [--records N]

Searches a whole topic of 1 KB records by text, by key and by CEL, in steps of one second as the
pages do. Then measures a producer's latency, alone and beside a search.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import ExitStack
from multiprocessing import get_context
from statistics import quantiles

from bench.process import cpu_s
from bench.subject import Penstock
from bench.topic import create
from confluent_kafka import Producer

from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.messages.query import SearchQuery
from penstock.console.messages.service import Messages

PARTITIONS = 3
PROBES = 1000
SEARCHES = {
    "text, newest first": {"text": "needle"},
    "text, oldest first": {"text": "needle", "newest_first": False},
    "text that many batches have": {"text": '"n": 77'},
    "key": {"key": "key-4711"},
    "CEL": {"expression": "value.amount > 998.5"},
    "CEL, three fields": {
        "expression": 'value.amount > 998.5 && value.name.startsWith("n") && key != "x"'
    },
}


def fill(port: int, topic: str, records: int, codec: str) -> None:
    create(port, topic, PARTITIONS, {})
    settings = {"linger.ms": 50, "batch.size": 1 << 17, "compression.type": codec, "log_level": 0}
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", **settings})
    for number in range(records):
        value = {"n": number, "amount": number % 1000, "name": f"name {number}", "tags": ["a", "b"]}
        rare = "needle" if number % 100_000 == 777 else ""
        text = json.dumps({**value, "rare": rare, "pad": "x" * 880})
        while True:
            try:
                producer.produce(topic, text, f"key-{number % 10_000}")
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        sys.exit("bench: not all records were written in two minutes")


async def search(port: int, query: SearchQuery) -> tuple[int, int, float, float]:
    """Matches, records, elapsed seconds and CPU seconds."""
    async with Client([Address("127.0.0.1", port)]) as client:
        messages = Messages(client, SystemClock())
        async with messages.client:
            began_s, used_s = time.perf_counter(), time.process_time()
            cursor = await messages.begin(query)
            while not cursor.is_done:
                cursor = (await messages.search(cursor, 0, 1000, sees_all=True)).cursor
            took_s, core_s = time.perf_counter() - began_s, time.process_time() - used_s
            return cursor.matches, cursor.total, took_s, core_s


def waits_ms(port: int, topic: str) -> list[float]:
    """The latency of each of a producer's records."""
    settings = {"linger.ms": 0, "log_level": 0, "bootstrap.servers": f"127.0.0.1:{port}"}
    producer = Producer(settings)
    found = []
    for _ in range(PROBES):
        began_s = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.flush(10)
        found.append((time.perf_counter() - began_s) * 1000)
    return found


def reported(name: str, found_ms: list[float]) -> str:
    cuts = quantiles(found_ms, n=100)
    return f"{name:32} p50 {cuts[49]:6.2f} ms, p99 {cuts[98]:6.2f} ms"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench search")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--codec", default="none", choices=["none", "lz4", "zstd", "snappy", "gzip"]
    )
    given = parser.parse_args(argv)
    with ExitStack() as stack:
        broker = Penstock(stack)
        fill(broker.port, "searched", given.records, given.codec)
        for name, parameters in SEARCHES.items():
            before_s = cpu_s(broker.pids)
            query = SearchQuery("searched", **parameters)  # type: ignore[arg-type]  # a table
            matches, total, took_s, core_s = asyncio.run(search(broker.port, query))
            print(
                f"{name:32} {took_s:6.2f} s, {core_s:6.2f} s of a core, {total / core_s:10,.0f} "
                f"records/s; broker {cpu_s(broker.pids) - before_s:5.2f} s; {matches} of {total}",
                flush=True,
            )
        create(broker.port, "probe", 1, {})
        waits_ms(broker.port, "probe")
        print(reported("a producer alone", waits_ms(broker.port, "probe")), flush=True)
        beside = get_context("spawn").Process(target=search_forever, args=(broker.port,))
        beside.start()
        print(reported("a producer beside a search", waits_ms(broker.port, "probe")), flush=True)
        beside.terminate()
        beside.join()


def search_forever(port: int) -> None:
    while True:
        asyncio.run(search(port, SearchQuery("searched", text="needle")))


if __name__ == "__main__":
    main(sys.argv[1:])
