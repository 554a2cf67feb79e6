"""`kafka-producer-perf-test.sh`: writes records, and reports throughput and latency."""

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.options import CLUSTER, Option, Table, Takes, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.perf_stats import LatencyStats, print_metrics
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

CHUNK_BYTES = 256 * 1024
REPORT_MS = 5000
TRANSACTION_MS = 3000
PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
CLIENT_ID = "perf-producer-client"
OPTIONS = (
    *CLUSTER,
    text("topic", "TOPIC", "The topic.", required=True),
    number("num-records", "N", "How many records to write.", required=True),
    number("record-size", "BYTES", "Size of a record."),
    text("payload-file", "FILE", "Values of records; they are picked at random."),
    text("payload-delimiter", "TEXT", "Separates values in the file.", default="\\n"),
    flag("payload-monotonic", "Values are increasing numbers."),
    number("throughput", "N", "Records per second at most; -1: no limit.", required=True),
    Option("producer-props", "Producer settings.", Takes.MANY, "NAME=VALUE", old=True),
    Option("command-property", "Producer settings.", Takes.MANY, "NAME=VALUE"),
    text("producer.config", "FILE", "As --command-config.", old=True),
    flag("print-metrics", "Print what was measured by the names of Kafka's metrics, too."),
    number("warmup-records", "N", "Accepted, without effect."),
    number("reporting-interval", "MS", "How often to report.", default=REPORT_MS),
    text("transactional-id", "ID", "Write in transactions, with this id."),
    number("transaction-duration-ms", "MS", "Commit a transaction after this time. [3000]"),
)


def produce(args: Arguments) -> int:
    args.require("topic", "num-records", "throughput")
    if len(args.given(PAYLOADS)) != 1:
        raise UsageError(
            "one of the arguments --record-size --payload-file --payload-monotonic is required"
        )
    if args.has("transaction-duration-ms") and args.number("transaction-duration-ms") <= 0:
        raise UsageError("--transaction-duration-ms should be greater than zero.")
    properties = ("producer-props", "command-property")
    settings = command_settings(args, "producer.config", properties=properties)
    hint(settings, "producer settings")
    if args.has("transactional-id"):
        settings["transactional.id"] = args.text("transactional-id")
    elif args.has("transaction-duration-ms"):
        settings.setdefault("transactional.id", f"performance-producer-{uuid4()}")
    run(args, partial(_produce, args, settings), settings, client_id=CLIENT_ID)
    return 0


def _payload(args: Arguments) -> Callable[[int], bytes]:
    """The function that makes the value of a record from its number."""
    chance = random.Random(0)  # noqa: S311  the same records each time, like Kafka's tool
    size = args.find_number("record-size")
    if size is not None:
        if size <= 0:
            raise ToolError("--record-size should be greater than zero.")
        letters = bytes(range(65, 91))
        values = [bytes(chance.choices(letters, k=size)) for _ in range(100)]
        return lambda number: values[number % len(values)]
    if args.has("payload-monotonic"):
        return lambda number: str(number).encode()
    path = Path(args.text("payload-file"))
    delimiter = args.text("payload-delimiter").replace("\\n", "\n").replace("\\t", "\t")
    lines = [each for each in path.read_bytes().split(delimiter.encode()) if each]
    if not lines:
        raise ToolError(f"File does not exist or empty file provided: {path}")
    return lambda _: chance.choice(lines)


async def _produce(args: Arguments, settings: Mapping[str, str], client: "Client") -> None:
    import asyncio

    from penstock.client.new_producer import new_producer
    from penstock.client.produce import ProducerRecord, all_written
    from penstock.client.properties import batch_bytes, producer_settings
    from penstock.client.transactional_producer import TransactionalProducer

    topic, total = args.text("topic"), args.number("num-records")
    per_second, every_s = args.number("throughput"), args.number("reporting-interval") / 1000
    payload = _payload(args)
    producer = new_producer(
        client,
        producer_settings(settings),
        create_topics=True,
        batch_bytes=batch_bytes(settings),
    )
    in_transaction_s = (args.find_number("transaction-duration-ms") or TRANSACTION_MS) / 1000
    await client.retrying(partial(client.topic, topic, create=True))
    started = reported = time.monotonic()
    stats = LatencyStats(started)
    sent = 0
    begun = None
    while sent < total:
        now = time.monotonic()
        due = total if per_second <= 0 else int((now - started) * per_second) + 1
        chunk: list[ProducerRecord] = []
        size = 0
        while sent + len(chunk) < min(total, due) and size < CHUNK_BYTES:
            value = payload(sent + len(chunk))
            chunk.append(ProducerRecord(topic, value))
            size += len(value)
        if not chunk:
            await asyncio.sleep(min(1 / per_second, 0.01))
            continue
        if isinstance(producer, TransactionalProducer) and begun is None:
            await producer.begin()
            begun = now
        all_written(await producer.deliver(chunk))
        sent += len(chunk)
        done = time.monotonic()
        is_due = begun is not None and (done - begun >= in_transaction_s or sent == total)
        if isinstance(producer, TransactionalProducer) and is_due:
            await producer.commit()
            begun = None
        stats.record([round((done - now) * 1000)] * len(chunk), size)
        if done - reported >= every_s:
            reported = done
            print(stats.window_line(done), flush=True)
    done = time.monotonic()
    print(stats.total_line(done))
    if args.has("print-metrics"):
        print_metrics("producer-metrics", settings.get("client.id", CLIENT_ID), stats.metrics(done))


TOOL = Tool(
    Table(
        "kafka-producer-perf-test",
        "This tool is used to verify the producer performance.",
        OPTIONS,
    ),
    produce,
)
