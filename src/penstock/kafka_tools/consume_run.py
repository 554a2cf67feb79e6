"""Reads and prints for the console consumer and the simple consumer shell."""

import os
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.errors import RETRIABLE
from penstock.client.group_consumer import GroupConsumer
from penstock.client.group_settings import GroupSettings, OffsetReset
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.metadata import TopicMetadata
from penstock.client.offsets import list_offsets
from penstock.client.properties import group_settings
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError
from penstock.kafka_tools.connection import name_values, read_properties, run
from penstock.kafka_tools.formatters import (
    Formatter,
    default_formatter,
    logging_formatter,
    no_op_formatter,
)
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import ToolError
from penstock.kafka_tools.topic_pattern import topic_pattern
from penstock.types import BrokerId, Offset, TopicPartition

TERMINATED = 143
INTERRUPTED = 130
POLL_MS = 250


class Tally:
    """Counts printed records, and keeps those that were read but not printed."""

    def __init__(self) -> None:
        self.printed = 0
        self.unprinted: list[ConsumedRecord] = []


def start(args: Arguments, settings: Mapping[str, str], group: str | None) -> int:
    tally = Tally()
    return until_ended(
        args, settings, tally, partial(_consume, args, settings, group, tally), "console-consumer"
    )


def until_ended(
    args: Arguments,
    settings: Mapping[str, str],
    tally: Tally,
    work: Callable[[Client], Awaitable[None]],
    client_id: str,
) -> int:
    """Read until a limit, a timeout or a signal; then print how many records were processed."""
    ended_by: list[int] = []

    def on_term(*_: object) -> None:
        ended_by.append(TERMINATED)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGTERM, on_term)
    code = 0
    try:
        run(args, work, settings, client_id=client_id)
    except KeyboardInterrupt:
        code = ended_by[0] if ended_by else INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
        print(f"Processed a total of {tally.printed} messages", file=sys.stderr)
        if args.has("enable-systest-events"):
            print("shutdown_complete", flush=True)
    return code


async def _consume(
    args: Arguments,
    settings: Mapping[str, str],
    group: str | None,
    tally: Tally,
    client: Client,
) -> None:
    chosen = chosen_settings(args, settings)
    topics = await _topics(args, client)
    formatter = await chosen_formatter(args, client, topics)
    if group is not None:
        await _consume_as_member(args, chosen, group, formatter, tally, client)
        return
    positions = await _positions(args, chosen.offset_reset, client, topics)
    async with SimpleConsumer(
        client, positions, isolation=chosen.isolation, max_wait_ms=POLL_MS
    ) as consumer:
        await _print_all(args, formatter, tally, consumer.poll)


def chosen_settings(args: Arguments, settings: Mapping[str, str]) -> GroupSettings:
    """Group settings; options override settings. A member commits automatically, as
    in Kafka's consumer.
    """
    given = {"enable.auto.commit": "true", **settings}
    if args.has("isolation-level"):
        given["isolation.level"] = args.text("isolation-level")
    if args.has("from-beginning"):
        given["auto.offset.reset"] = "earliest"
    return group_settings(given)


async def _consume_as_member(
    args: Arguments,
    settings: GroupSettings,
    group: str,
    formatter: Formatter,
    tally: Tally,
    client: Client,
) -> None:
    """Read as a group member; printed records are committed periodically and at the end."""
    async with GroupConsumer(client, group, settings) as consumer:
        if args.has("include"):
            consumer.subscribe(pattern=topic_pattern(args.text("include")).pattern)
        else:
            consumer.subscribe([args.text("topic")])
        try:
            await _print_all(args, formatter, tally, partial(consumer.poll, POLL_MS))
        finally:
            # Leaving the group commits positions, so move them back to the first unprinted record.
            for each in reversed(tally.unprinted):
                with suppress(ConfigError):  # the partition belongs to another member now
                    consumer.seek(each.partition, Offset(each.record.offset))


async def _print_all(
    args: Arguments,
    formatter: Formatter,
    tally: Tally,
    poll: Callable[[], Awaitable[list[ConsumedRecord]]],
) -> None:
    """Print until the limit or the timeout."""
    limit, patience_ms = args.find_number("max-messages"), args.find_number("timeout-ms")
    if args.has("no-wait-at-logend"):
        patience_ms = 0
    last = time.monotonic()
    while limit is None or tally.printed < limit:
        records = tally.unprinted = await poll()
        left = len(records) if limit is None else limit - tally.printed
        for each in records[:left]:
            _print(args, formatter, each)
            tally.printed += 1
        sys.stdout.flush()  # raises if the reader has closed the pipe
        tally.unprinted = records[left:]
        if records:
            last = time.monotonic()
        elif patience_ms is not None and (time.monotonic() - last) * 1000 >= patience_ms:
            break


def _print(args: Arguments, formatter: Formatter, record: ConsumedRecord) -> None:
    try:
        line = formatter(record)
    except ToolError:
        if not args.has("skip-message-on-error"):
            raise
        return
    if line is not None:
        sys.stdout.buffer.write(line)


async def _topics(args: Arguments, client: Client) -> list[TopicMetadata]:
    name = args.find("topic")
    if name is not None:
        # Let the broker create the topic, as Kafka's consumer does.
        return [await client.retrying(partial(client.topic, name, create=True), retry_on=RETRIABLE)]
    pattern = topic_pattern(args.text("include"))
    return [
        each
        for each in await list_topics(client)
        if pattern.fullmatch(each.name) and not each.is_internal
    ]


async def _positions(
    args: Arguments,
    reset: OffsetReset,
    client: Client,
    topics: Sequence[TopicMetadata],
) -> dict[TopicPartition, Offset]:
    """The start positions of the partitions, from the options."""
    index = args.find_number("partition")
    partitions = [
        TopicPartition(topic.name, each)
        for topic in topics
        for each in ([index] if index is not None else topic.partitions)
    ]
    first = EARLIEST if reset is OffsetReset.EARLIEST else LATEST
    given = args.find("offset")
    wanted: int | None = None
    if given in {"earliest", "-2"}:
        first = EARLIEST
    elif given in {"latest", "-1"}:
        first = LATEST
    elif given is not None:
        if not given.isdigit():
            raise ToolError(
                f"The provided offset value '{given}' is incorrect. Valid values are 'earliest', "
                "'latest', or a non-negative long."
            )
        wanted = int(given)
    found = await list_offsets(client, dict.fromkeys(partitions, first))
    positions = {each: at.offset for each, at in found.items()}
    if wanted is not None:
        ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
        starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
        positions |= {
            each: Offset(wanted)
            for each in partitions
            if starts[each].offset <= wanted <= ends[each].offset
        }
    return positions


async def chosen_formatter(
    args: Arguments, client: Client, topics: Sequence[TopicMetadata]
) -> Formatter:
    properties: dict[str, str] = {"print.offset": "true"} if args.has("print-offsets") else {}
    if args.has("formatter-config"):
        properties |= read_properties(args.text("formatter-config"), "--formatter-config")
    for name in ("property", "formatter-property"):
        properties |= name_values(args.all(name), f"--{name}")
    for name in ("key", "value"):
        if (given := args.find(f"{name}-deserializer")) is not None:
            properties[f"{name}.deserializer"] = given
    class_name = args.find("formatter") or "DefaultMessageFormatter"
    match re.split(r"[.$]", class_name)[-1]:
        case "DefaultMessageFormatter":
            return default_formatter(
                properties, timestamp_type=await _timestamp_types(client, topics, properties)
            )
        case "LoggingMessageFormatter":
            return logging_formatter(
                default_formatter(properties, timestamp_type=lambda _: "CreateTime")
            )
        case "NoOpMessageFormatter" | "ChecksumMessageFormatter":
            return no_op_formatter
        case "OffsetsMessageFormatter" | "GroupMetadataMessageFormatter" as name:
            from penstock.kafka_tools import internal_formatters

            if name == "GroupMetadataMessageFormatter":
                return internal_formatters.json_formatter(internal_formatters.GROUPS)
            if class_name.startswith("kafka."):
                retention_ms = await _offsets_retention_ms(client)
                return internal_formatters.old_offsets_formatter(retention_ms)
            return internal_formatters.json_formatter(internal_formatters.OFFSETS)
        case "TransactionLogMessageFormatter":
            from penstock.kafka_tools import internal_formatters

            return internal_formatters.json_formatter(internal_formatters.TRANSACTIONS)
        case _:
            raise ToolError(
                f"--formatter {class_name}: known are DefaultMessageFormatter, "
                "LoggingMessageFormatter, NoOpMessageFormatter, OffsetsMessageFormatter, "
                "GroupMetadataMessageFormatter and TransactionLogMessageFormatter"
            )


async def _timestamp_types(
    client: Client, topics: Sequence[TopicMetadata], properties: Mapping[str, str]
) -> Callable[[str], str]:
    """`message.timestamp.type` by topic; read only if timestamps are printed."""
    types: dict[str, str] = {}
    if properties.get("print.timestamp", "false").strip().lower() == "true":
        for topic in topics:
            found = await describe_configs(
                client,
                Resource(ConfigResourceType.TOPIC, topic.name),
                names=["message.timestamp.type"],
            )
            types[topic.name] = found["message.timestamp.type"].value or "CreateTime"
    return lambda topic: types.get(topic, "CreateTime")


async def _offsets_retention_ms(client: Client) -> int:
    """How long brokers keep committed offsets."""
    broker = next(iter((await client.cluster()).brokers), BrokerId(0))
    name = "offsets.retention.minutes"
    resource = Resource(ConfigResourceType.BROKER, str(broker))
    found = await describe_configs(client, resource, names=[name])
    return int(found[name].value or 0) * 60_000 if name in found else 0
