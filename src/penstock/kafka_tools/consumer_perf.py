"""`kafka-consumer-perf-test.sh`: reads records, and reports throughput."""

import re
import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import command_settings, name_values, run
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
from penstock.kafka_tools.perf_stats import MEGABYTE
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client

COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
OPTIONS = (
    *CLUSTER,
    BROKER_LIST,
    text("topic", "TOPIC", "The topic."),
    text("include", "REGEX", "Topics by a regular expression."),
    number("num-records", "N", "How many records to read.", also=("messages",)),
    text("group", "GROUP", "Accepted: all partitions are read without a group."),
    Option("timeout", "Longest time between records.", Takes.OPTIONAL, "MS", int, "10000"),
    flag("from-latest", "Start at the end."),
    number("fetch-size", "BYTES", "Accepted, without effect."),
    number("socket-buffer-size", "BYTES", "Accepted, without effect."),
    number("threads", "N", "Accepted, without effect.", old=True),
    number("num-fetch-threads", "N", "Accepted, without effect.", old=True),
    number("reporting-interval", "MS", "How often to report.", default=5000),
    flag("show-detailed-stats", "Report at each interval."),
    flag("hide-header", "Print no header."),
    flag("print-metrics", "Accepted, without effect."),
    text("date-format", "FORMAT", "Accepted, without effect."),
    text("command-property", "NAME=VALUE", "A consumer setting.", repeats=True),
    text("consumer.config", "FILE", "As --command-config.", old=True),
    flag("new-consumer", "Accepted, without effect.", old=True),
)


def consume(args: Arguments) -> int:
    if not args.has("topic", "include"):
        raise UsageError('Missing required argument "[topic]"')
    args.require("num-records")
    settings = command_settings(args, "consumer.config")
    settings |= name_values(args.all("command-property"), "--command-property")
    hint(settings, "consumer settings")
    run(args, partial(_consume, args), settings, client_id="perf-consumer-client")
    return 0


async def _consume(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import list_topics
    from penstock.client.consume import SimpleConsumer
    from penstock.client.listing import EARLIEST, LATEST
    from penstock.client.offsets import list_offsets
    from penstock.types import TopicPartition

    detailed = args.has("show-detailed-stats")
    if not args.has("hide-header"):
        print(f"{'time, threadId' if detailed else 'start.time, end.time'}, {COLUMNS}")
    pattern = re.compile(args.find("topic") or args.text("include").replace(",", "|"))
    partitions = [
        TopicPartition(topic.name, index)
        for topic in await list_topics(client)
        if pattern.fullmatch(topic.name)
        for index in topic.partitions
    ]
    first = LATEST if args.has("from-latest") else EARLIEST
    starts = await list_offsets(client, dict.fromkeys(partitions, first))
    wanted, patience_s = args.number("num-records"), args.number("timeout") / 1000
    every_s = args.number("reporting-interval") / 1000
    began, wall = time.monotonic(), datetime.now().astimezone()
    last = reported = began
    count = size = shown_count = shown_size = 0
    consumer = SimpleConsumer(client, {each: at.offset for each, at in starts.items()})
    async with consumer:
        while count < wanted and time.monotonic() - last < patience_s and partitions:
            for each in (await consumer.poll())[: wanted - count]:
                count += 1
                size += len(each.record.key or b"") + len(each.record.value or b"")
                last = time.monotonic()
            now = time.monotonic()
            if detailed and now - reported >= every_s:
                seconds = now - reported
                row = _row(size, size - shown_size, count, count - shown_count, seconds)
                print(f"{_stamp()}, 0, {row}")
                reported, shown_count, shown_size = now, count, size
    if not detailed:
        seconds = time.monotonic() - began
        print(f"{_spelled(wall)}, {_stamp()}, {_row(size, size, count, count, seconds)}")
    if count < wanted:
        print(
            f"WARNING: Exiting before consuming the expected number of records: timeout "
            f"({round(patience_s * 1000)} ms) exceeded. You can use the --timeout option to "
            "increase the timeout."
        )


def _row(total: int, size: int, total_count: int, count: int, seconds: float) -> str:
    seconds = max(seconds, 1e-3)
    rates = f"{size / MEGABYTE / seconds:.4f}", f"{count / seconds:.4f}"
    return (
        f"{total / MEGABYTE:.4f}, {rates[0]}, {total_count}, {rates[1]}, 0, "
        f"{round(seconds * 1000)}, {rates[0]}, {rates[1]}"
    )


def _stamp() -> str:
    return _spelled(datetime.now().astimezone())


def _spelled(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"


TOOL = Tool(
    Table(
        "kafka-consumer-perf-test",
        "This tool is used to verify the consumer performance.",
        OPTIONS,
    ),
    consume,
)
