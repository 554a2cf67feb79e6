"""`kafka-e2e-latency.sh`: writes records one by one, reads each back, and reports the latencies."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.options import BOOTSTRAP, COMMAND_CONFIG, Option, Table, number, text
from penstock.kafka_tools.parser import Arguments, UsageError, parse
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.consume import SimpleConsumer
    from penstock.client.record_sender import ProducerRecord

PATIENCE_S = 60
NAMES = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
OLD_WORDS = (5, 6)
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic; made with one partition if it does not exist."),
    number("num-records", "N", "How many records to send."),
    text("producer-acks", "1|all", "Acknowledgements that the producer waits for."),
    number("record-size", "BYTES", "The size of each value."),
    number("record-key-size", "BYTES", "The size of each key; 0: no key.", default=0),
    number("num-headers", "N", "Headers of each record.", default=0),
    number("record-header-key-size", "BYTES", "The size of a header's key.", default=0),
    number("record-header-size", "BYTES", "The size of a header's value; -1: null.", default=0),
)


def latency(args: Arguments) -> int:
    if args.words and not args.given(NAMES):
        args = _old_line(args.words)
    args.require(*NAMES)
    if args.text("producer-acks") not in {"1", "all"}:
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous "
            "acknowledgement. Please use '1' or 'all'."
        )
    for name in ("num-records", "record-size"):
        if args.number(name) < 1:
            raise UsageError(f"Value for --{name} must be a positive integer.")
    settings = command_settings(args)
    run(args, partial(_measure, args, settings), settings, client_id="e2e-latency")
    return 0


def _old_line(words: Sequence[str]) -> Arguments:
    """Parse positional values in their fixed order; the last may be a settings file."""
    if len(words) not in OLD_WORDS:
        raise UsageError(
            "Invalid number of arguments. Expected 5 or 6 positional arguments, but got "
            f"{len(words)}. Usage: bootstrap-server topic num-records producer-acks record-size "
            "[optional] command-config"
        )
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
        "Please use named arguments instead: --bootstrap-server, --topic, --num-records, "
        "--producer-acks, --record-size, --command-config"
    )
    names = (*NAMES, "command-config")
    pairs = zip(names, words, strict=False)
    return parse(TOOL.table, [word for name, given in pairs for word in (f"--{name}", given)])


async def _measure(args: Arguments, settings: Mapping[str, str], client: "Client") -> None:
    from penstock.client.admin import NewTopic, create_topic
    from penstock.client.consume import SimpleConsumer
    from penstock.client.listing import LATEST
    from penstock.client.new_producer import new_producer
    from penstock.client.offsets import list_offsets
    from penstock.client.produce import all_written
    from penstock.client.properties import producer_settings
    from penstock.types import TopicPartition

    name = args.text("topic")
    if not await client.existing_topics([name]):
        print(
            f'Topic "{name}" does not exist. Will create topic with 1 partition(s) and replication '
            "factor = 1"
        )
        await create_topic(client, NewTopic(name=name, partitions=1, replication_factor=1))
    topic = await client.retrying(partial(client.topic, name))
    partitions = [TopicPartition(name, each) for each in topic.partitions]
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    producer = new_producer(
        client, producer_settings({**settings, "acks": args.text("producer-acks")})
    )
    times_ms: list[float] = []
    async with SimpleConsumer(client, {tp: at.offset for tp, at in ends.items()}) as reader:
        for number, record in enumerate(_records(args, name)):
            began = time.perf_counter()
            all_written(await producer.deliver([record]))
            await _read(reader, record)
            times_ms.append((time.perf_counter() - began) * 1000)
            if number % 1000 == 0:
                print(f"{number}\t{times_ms[-1]}")
    print(report(times_ms))


def _records(args: Arguments, topic: str) -> "Iterator[ProducerRecord]":
    """Records of random letters, so that each can be recognised."""
    from penstock.client.record_sender import ProducerRecord

    chance = Random(0)  # noqa: S311

    def letters(size: int) -> bytes:
        return bytes(chance.randrange(65, 91) for _ in range(size))

    key_size, header_size = args.number("record-key-size"), args.number("record-header-size")
    for _ in range(args.number("num-records")):
        yield ProducerRecord(
            topic,
            letters(args.number("record-size")),
            key=letters(key_size) if key_size > 0 else None,
            headers=[
                (
                    letters(args.number("record-header-key-size")).decode(),
                    None if header_size < 0 else letters(header_size),
                )
                for _ in range(args.number("num-headers"))
            ],
        )


async def _read(reader: "SimpleConsumer", sent: "ProducerRecord") -> None:
    """Wait for the record; it must be the only one, and unchanged."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := await reader.poll(1000)):
        if time.monotonic() > deadline:
            raise ToolError(
                f"poll() timed out before finding a result (timeout:[{PATIENCE_S * 1000}ms])"
            )
    record = found[0].record
    for about, read, expected in (
        ("value", record.value, sent.value),
        ("key", record.key, sent.key),
    ):
        if (None if read is None else bytes(read)) != expected:
            raise ToolError(
                f"The message {about} read [{_text(read)}] did not match the message {about} sent "
                f"[{_text(expected)}]"
            )
    if [(name, value and bytes(value)) for name, value in record.headers] != list(sent.headers):
        raise ToolError("Header count mismatch between sent and received messages")
    if len(found) > 1:
        raise ToolError(f"Only one result was expected during this test. We found [{len(found)}]")


def _text(data: "bytes | memoryview | None") -> str:
    return "null" if data is None else bytes(data).decode(errors="replace")


def report(times_ms: Sequence[float]) -> str:
    """The average, and percentiles in whole milliseconds."""
    ordered = sorted(int(each) for each in times_ms)
    at = {share: ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999)}
    return (
        f"Avg latency: {sum(times_ms) / len(times_ms):.4f} ms\n"
        f"Percentiles: 50th = {at[0.5]}, 99th = {at[0.99]}, 99.9th = {at[0.999]}"
    )


TOOL = Tool(
    Table(
        "kafka-e2e-latency",
        "This tool measures end-to-end latency in Kafka by sending messages and timing their "
        "reception.",
        OPTIONS,
    ),
    latency,
)
