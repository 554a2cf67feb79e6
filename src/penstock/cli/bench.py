"""`penstock bench`: measures the throughput of producing and consuming, and end-to-end latency."""

import asyncio
import time
from random import Random

import click

from penstock.cli.bench_figures import BenchRun, line
from penstock.cli.frame.command import Noun
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.record.compression import Codec
from penstock.types import Offset, TopicPartition

TOPIC = click.argument("topic", type=TOPIC_NAME)
RECORDS = click.option(
    "-n", "--records", type=click.IntRange(min=1), default=100_000, show_default=True
)
SIZE = click.option(
    "--size",
    "size",
    type=click.IntRange(1, 100_000_000),
    default=100,
    show_default=True,
    help="Bytes of a value.",
)
AT_ONCE_BYTES = 1 << 20


@click.group(cls=Noun)
def bench() -> None:
    """Measure producing, consuming and end-to-end latency, like Kafka's kafka-*-perf-test."""


def show(row: dict[str, object], output: str) -> None:
    if output == "json":
        print_json(row)
    else:
        click.echo(line(row))


@bench.command("produce", example="penstock bench produce events --records 1000 --size 100")
@TOPIC
@RECORDS
@SIZE
@click.option("--rate", type=click.IntRange(min=1), help="Records per second, at most.")
@click.option(
    "-z",
    "--codec",
    type=click.Choice([each.name.lower() for each in Codec]),
    default="none",
    show_default=True,
)
@FORMAT
@remote
def produce(
    remote: Remote,
    topic: str,
    records: int,
    size: int,
    rate: int | None,
    codec: str,
    output: str,
) -> None:
    """Write records as fast as one idempotent producer can (acks=all), or at a rate."""

    async def work(client: Client) -> BenchRun:
        await describe_topics(client, [topic])  # raises if it is missing
        producer = IdempotentProducer(client, codec=Codec[codec.upper()])
        value = Random(0).randbytes(size)  # noqa: S311  incompressible bytes
        at_once = max(min(AT_ONCE_BYTES // size, records, rate or records), 1)
        run, began = BenchRun(), time.monotonic()
        with ProgressBar("writing", records) as progress:
            while run.records < records:
                count = min(at_once, records - run.records)
                sent = time.monotonic()
                await producer.send([ProducerRecord(topic, value)] * count)
                run.add(count, count * size, (time.monotonic() - sent) * 1000)
                progress.at(run.records)
                if rate is not None:
                    await asyncio.sleep(max(began + run.records / rate - time.monotonic(), 0))
        run.seconds = time.monotonic() - began
        return run

    show(remote.run(work).row(test="produce", topic=topic), output)


@bench.command("consume", example="penstock bench consume events --records 1000")
@TOPIC
@RECORDS
@FORMAT
@remote
def consume(remote: Remote, topic: str, records: int, output: str) -> None:
    """Read records from the beginning, up to --records or to the end."""

    async def work(client: Client) -> BenchRun:
        (found,) = await describe_topics(client, [topic])
        partitions = [TopicPartition(topic, index) for index in found.partitions]
        begin, ends = (
            await offsets(client, partitions, EARLIEST),
            await offsets(client, partitions, LATEST),
        )
        run, began = BenchRun(), time.monotonic()
        total = min(records, sum(ends[each] - begin[each] for each in partitions))
        with ProgressBar("reading", total) as progress:
            async with SimpleConsumer(client, begin, ends=ends) as reader:
                while reader.unfinished and run.records < records:
                    for each in (await reader.poll())[: records - run.records]:
                        run.records += 1
                        run.size_bytes += len(each.record.key or b"") + len(
                            each.record.value or b""
                        )
                    progress.at(run.records)
        run.seconds = time.monotonic() - began
        return run

    show(remote.run(work).row(test="consume", topic=topic), output)


async def offsets(
    client: Client, partitions: list[TopicPartition], at: int
) -> dict[TopicPartition, Offset]:
    found = await list_offsets(client, dict.fromkeys(partitions, at))
    return {tp: each.offset for tp, each in found.items()}


@bench.command("end-to-end", example="penstock bench end-to-end events --records 100")
@TOPIC
@RECORDS
@SIZE
@FORMAT
@remote
def end_to_end(remote: Remote, topic: str, records: int, size: int, output: str) -> None:
    """Write records one by one, and read each before the next is written."""

    async def work(client: Client) -> BenchRun:
        (found,) = await describe_topics(client, [topic])
        partition = TopicPartition(topic, min(found.partitions))
        begin = await offsets(client, [partition], LATEST)
        producer, value = IdempotentProducer(client), Random(0).randbytes(size)  # noqa: S311
        run, began = BenchRun(), time.monotonic()
        with ProgressBar("round trips", records) as progress:
            async with SimpleConsumer(client, begin) as reader:
                for number in range(records):
                    sent = time.monotonic()
                    record = ProducerRecord(topic, value, partition=partition.partition)
                    (written,) = await producer.send([record])
                    await until_read(reader, written.offset)
                    run.add(1, size, (time.monotonic() - sent) * 1000)
                    progress.at(number + 1)
        run.seconds = time.monotonic() - began
        return run

    show(remote.run(work).row(test="end-to-end", topic=topic), output)


async def until_read(reader: SimpleConsumer, offset: Offset) -> None:
    while not any(each.record.offset >= offset for each in await reader.poll()):
        pass
