"""`kafka-consumer-perf-test.sh`: reads records, and reports throughput."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from penstock.cli.bench_figures import MB as MEGABYTE
from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.java_date import USUAL, java_date
from penstock.kafka_tools.options import (
    BROKER_LIST,
    CLUSTER,
    Option,
    Table,
    Takes,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.perf_stats import print_metrics
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool
from penstock.kafka_tools.topic_pattern import topic_pattern

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.consume import ConsumedRecord

Poll: TypeAlias = Callable[[], Awaitable[list["ConsumedRecord"]]]
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
CLIENT_ID = "perf-consumer-client"
OPTIONS = (
    *CLUSTER,
    BROKER_LIST,
    text("topic", "TOPIC", "The topic."),
    text("include", "REGEX", "Topics by a regular expression."),
    number("num-records", "N", "How many records to read.", also=("messages",)),
    text("group", "GROUP", "Read as a member of this group, and commit. [without a group]"),
    Option("timeout", "Longest time between records.", Takes.OPTIONAL, "MS", int, "10000"),
    flag("from-latest", "Start at the end."),
    number("fetch-size", "BYTES", "Bytes of a partition per request, without --group. [1048576]"),
    number("socket-buffer-size", "BYTES", "Accepted, without effect."),
    number("threads", "N", "Accepted, without effect.", old=True),
    number("num-fetch-threads", "N", "Accepted, without effect.", old=True),
    number("reporting-interval", "MS", "How often to report.", default=5000),
    flag("show-detailed-stats", "Report at each interval."),
    flag("hide-header", "Print no header."),
    flag("print-metrics", "Print what was measured by the names of Kafka's metrics, too."),
    text("date-format", "FORMAT", "Of times, as in Java's SimpleDateFormat.", default=USUAL),
    text("command-property", "NAME=VALUE", "A consumer setting.", repeats=True),
    text("consumer.config", "FILE", "As --command-config.", old=True),
    flag("new-consumer", "Accepted, without effect.", old=True),
)


def consume(args: Arguments) -> int:
    if not args.has("topic", "include"):
        raise UsageError('Missing required argument "[topic]"')
    args.require("num-records")
    settings = command_settings(args, "consumer.config", properties=("command-property",))
    hint(settings, "consumer settings")
    stamp(args)  # check --date-format before anything is read
    settings.setdefault("auto.offset.reset", "latest" if args.has("from-latest") else "earliest")
    run(args, partial(_consume, args, settings), settings, client_id=CLIENT_ID)
    return 0


@asynccontextmanager
async def _records(
    args: Arguments, settings: Mapping[str, str], client: "Client"
) -> AsyncIterator["Poll"]:
    """Yield a poll function that reads as a group member, or all partitions without a group."""
    from penstock.client.admin import list_topics
    from penstock.client.consume import PARTITION_BYTES, SimpleConsumer
    from penstock.client.listing import EARLIEST, LATEST
    from penstock.client.offsets import list_offsets
    from penstock.client.properties import group_settings
    from penstock.types import TopicPartition

    if args.has("topic"):
        pattern = re.escape(args.text("topic"))
    else:
        pattern = topic_pattern(args.text("include")).pattern
    wanted = group_settings(settings)
    if args.has("group"):
        from penstock.client.group_consumer import GroupConsumer

        async with GroupConsumer(client, args.text("group"), wanted) as member:
            member.subscribe(pattern=pattern)
            yield member.poll
            await member.commit()
        return
    partitions = [
        TopicPartition(topic.name, index)
        for topic in await list_topics(client)
        if re.fullmatch(pattern, topic.name)
        for index in topic.partitions
    ]
    first = LATEST if args.has("from-latest") else EARLIEST
    starts = await list_offsets(client, dict.fromkeys(partitions, first))
    begin = {each: at.offset for each, at in starts.items()}
    size = args.find_number("fetch-size") or PARTITION_BYTES
    async with SimpleConsumer(
        client, begin, isolation=wanted.isolation, partition_bytes=size
    ) as reader:
        yield reader.poll if partitions else _nothing


async def _nothing() -> list["ConsumedRecord"]:
    await asyncio.sleep(0.1)
    return []


async def _consume(args: Arguments, settings: Mapping[str, str], client: "Client") -> None:
    detailed = args.has("show-detailed-stats")
    if not args.has("hide-header"):
        print(f"{'time, threadId' if detailed else 'start.time, end.time'}, {COLUMNS}")
    wanted, patience_s = args.number("num-records"), args.number("timeout") / 1000
    every_s = args.number("reporting-interval") / 1000
    began, start = time.monotonic(), stamp(args)
    last = reported = began
    count = size = shown_count = shown_size = 0
    async with _records(args, settings, client) as poll:
        while count < wanted and time.monotonic() - last < patience_s:
            for each in (await poll())[: wanted - count]:
                count += 1
                size += len(each.record.key or b"") + len(each.record.value or b"")
                last = time.monotonic()
            now = time.monotonic()
            if detailed and now - reported >= every_s:
                seconds = now - reported
                row = _row(size, size - shown_size, count, count - shown_count, seconds)
                print(f"{stamp(args)}, 0, {row}")
                reported, shown_count, shown_size = now, count, size
    seconds = max(time.monotonic() - began, 1e-3)
    if not detailed:
        print(f"{start}, {stamp(args)}, {_row(size, size, count, count, seconds)}")
    if count < wanted:
        print(
            f"WARNING: Exiting before consuming the expected number of records: timeout "
            f"({round(patience_s * 1000)} ms) exceeded. You can use the --timeout option to "
            "increase the timeout."
        )
    if args.has("print-metrics"):
        figures = {
            "records-consumed-total": float(count),
            "records-consumed-rate": count / seconds,
            "bytes-consumed-total": float(size),
            "bytes-consumed-rate": size / seconds,
        }
        print_metrics(
            "consumer-fetch-manager-metrics", settings.get("client.id", CLIENT_ID), figures
        )


def _row(total: int, size: int, total_count: int, count: int, seconds: float) -> str:
    seconds = max(seconds, 1e-3)
    rates = f"{size / MEGABYTE / seconds:.4f}", f"{count / seconds:.4f}"
    return (
        f"{total / MEGABYTE:.4f}, {rates[0]}, {total_count}, {rates[1]}, 0, "
        f"{round(seconds * 1000)}, {rates[0]}, {rates[1]}"
    )


def stamp(args: Arguments) -> str:
    """The current time in the format of --date-format."""
    return java_date(args.text("date-format"), datetime.now().astimezone())


TOOL = Tool(
    Table(
        "kafka-consumer-perf-test",
        "This tool is used to verify the consumer performance.",
        OPTIONS,
    ),
    consume,
)
