"""`kafka-share-consumer-perf-test.sh`: reads as members of a share group; reports throughput."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from penstock.cli.bench_figures import MB as MEGABYTE
from penstock.kafka_tools.connection import command_settings, run
from penstock.kafka_tools.consumer_perf import stamp
from penstock.kafka_tools.java_date import USUAL
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option,
    Table,
    Takes,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.perf_stats import print_metrics
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client

COLUMNS = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, "
    "fetch.time.ms"
)
POLL_MS = 100
CLIENT_ID = "perf-share-consumer-client"
OPTIONS = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic."),
    number("num-records", "N", "How many records to read.", also=("messages",)),
    text("group", "GROUP", "The share group.", default="perf-share-consumer"),
    number("threads", "N", "How many members share the load.", default=1),
    Option("timeout", "Longest time between records.", Takes.OPTIONAL, "MS", int, "10000"),
    number("reporting-interval", "MS", "How often to report.", default=5000),
    flag("show-detailed-stats", "Report at each interval."),
    flag("show-consumer-stats", "Report of each member, too."),
    flag("hide-header", "Print no header."),
    flag("print-metrics", "Print what was measured by the names of Kafka's metrics, too."),
    number("fetch-size", "BYTES", "Accepted, without effect."),
    number("socket-buffer-size", "BYTES", "Accepted, without effect."),
    text("date-format", "FORMAT", "Of times, as in Java's SimpleDateFormat.", default=USUAL),
    text("command-property", "NAME=VALUE", "A consumer setting.", repeats=True),
    text("consumer.config", "FILE", "As --command-config."),
)


@dataclass(slots=True)
class MemberShare:
    """The counts and times of one member."""

    number: int
    began: float
    start: str
    records: int = 0
    size: int = 0
    ended: float = field(default=0.0)

    def row(self, args: Arguments, until: float) -> str:
        return row(args, self.start, self.size, self.records, until - self.began)


def row(args: Arguments, start: str, size: int, records: int, seconds: float) -> str:
    """The figures from `start` until now, in Kafka's columns."""
    seconds = max(seconds, 1e-3)
    return (
        f"{start}, {stamp(args)}, {size / MEGABYTE:.4f}, {size / MEGABYTE / seconds:.4f}, "
        f"{records / seconds:.4f}, {records}, {round(seconds * 1000)}"
    )


def consume(args: Arguments) -> int:
    args.require("bootstrap-server", "topic", "num-records")
    if args.number("threads") < 1:
        raise UsageError("--threads must be above 0")
    settings = command_settings(args, "consumer.config", properties=("command-property",))
    stamp(args)  # check --date-format before anything is read
    if not args.has("hide-header"):
        print(COLUMNS)
    run(args, partial(_consume, args, settings), settings, client_id=CLIENT_ID)
    return 0


async def _consume(args: Arguments, settings: Mapping[str, str], client: "Client") -> None:
    wanted, start, began = args.number("num-records"), stamp(args), time.monotonic()
    shares = [MemberShare(each + 1, began, start) for each in range(args.number("threads"))]
    async with asyncio.TaskGroup() as tasks:
        for each in shares:
            tasks.create_task(_read(args, settings, client, each, shares))
    if args.has("show-consumer-stats"):
        for each in shares:
            print(
                f"Share consumer {each.number} having client id perf-share-consumer-client-"
                f"{each.number} consumption metrics- {each.row(args, each.ended)}"
            )
    records = sum(each.records for each in shares)
    if records < wanted:
        print(
            "WARNING: Exiting before consuming the expected number of records: timeout "
            f"({args.number('timeout')} ms) exceeded. You can use the --timeout option to "
            "increase the timeout."
        )
    size, seconds = sum(each.size for each in shares), max(time.monotonic() - began, 1e-3)
    print(row(args, start, size, records, seconds))
    if args.has("print-metrics"):
        figures = {
            "records-consumed-total": float(records),
            "records-consumed-rate": records / seconds,
            "bytes-consumed-total": float(size),
            "bytes-consumed-rate": size / seconds,
        }
        print_metrics(
            "consumer-share-fetch-manager-metrics", settings.get("client.id", CLIENT_ID), figures
        )


async def _read(
    args: Arguments,
    settings: Mapping[str, str],
    client: "Client",
    mine: MemberShare,
    shares: list[MemberShare],
) -> None:
    """Read until all members together have enough, or until this one gets nothing for too long."""
    from penstock.client.share_consumer import ShareConsumer
    from penstock.kafka_tools.share_consume_run import max_records
    from penstock.wire.enums import AcknowledgeType

    wanted, patience_s = args.number("num-records"), args.number("timeout") / 1000
    every_s = args.number("reporting-interval") / 1000
    last = reported = time.monotonic()
    async with (
        client.twin() as own,
        ShareConsumer(
            own, args.text("group"), [args.text("topic")], max_records=max_records(settings)
        ) as consumer,
    ):
        while sum(each.records for each in shares) < wanted:
            found = await consumer.poll(POLL_MS)
            now = time.monotonic()
            if found:
                last = now
                mine.records += len(found)
                mine.size += sum(
                    len(each.record.key or b"") + len(each.record.value or b"") for each in found
                )
                consumer.acknowledge(found, AcknowledgeType.ACCEPT)
                await consumer.commit()
            elif now - last >= patience_s:
                break
            if args.has("show-detailed-stats") and now - reported >= every_s:
                print(f"{mine.row(args, now)} for share consumer {mine.number}")
                reported = now
    mine.ended = time.monotonic()


TOOL = Tool(
    Table(
        "kafka-share-consumer-perf-test",
        "This tool is used to verify the share consumer performance.",
        OPTIONS,
    ),
    consume,
)
