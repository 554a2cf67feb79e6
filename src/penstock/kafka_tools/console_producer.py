"""`kafka-console-producer.sh`: writes a record for each line of standard input."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import command_settings, name_values, read_properties, run
from penstock.kafka_tools.line_reader import KafkaLineReader
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    BROKER_LIST,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Option,
    Table,
    Takes,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.record.compression import Codec

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    BROKER_LIST,
    ZOOKEEPER,
    COMMAND_CONFIG,
    text("topic", "TOPIC", "The topic.", required=True),
    text("command-property", "NAME=VALUE", "A producer setting.", repeats=True),
    text("producer-property", "NAME=VALUE", "As --command-property.", repeats=True, old=True),
    text("producer.config", "FILE", "As --command-config.", old=True),
    text("reader-property", "NAME=VALUE", "How lines are read.", repeats=True),
    text("reader-config", "FILE", "How lines are read, in properties syntax."),
    text("property", "NAME=VALUE", "As --reader-property.", repeats=True, old=True),
    text("line-reader", "CLASS", "Accepted if it is LineMessageReader."),
    Option("compression-codec", f"One of {', '.join(CODECS)}.", Takes.OPTIONAL, "CODEC"),
    number("batch-size", "BYTES", "Size of a partition's batch. [16384]"),
    number("max-partition-memory-bytes", "BYTES", "As --batch-size.", old=True),
    text(
        "request-required-acks",
        "ACKS",
        "Acknowledgements to wait for: 0 (none), 1 (the leader's), all or -1. [-1]",
    ),
    number("request-timeout-ms", "MS", "Accepted, without effect."),
    number("message-send-max-retries", "N", "Accepted, without effect."),
    number("retry-backoff-ms", "MS", "Accepted, without effect."),
    number("timeout", "MS", "Accepted: lines are sent as they come."),
    number("queue-size", "N", "Accepted, without effect.", old=True),
    number("queue-enqueuetimeout-ms", "MS", "Accepted, without effect.", old=True),
    number("max-block-ms", "MS", "Accepted, without effect."),
    number("max-memory-bytes", "BYTES", "Accepted, without effect."),
    number("metadata-expiry-ms", "MS", "Accepted, without effect."),
    number("socket-buffer-size", "BYTES", "Accepted, without effect."),
    text("key-serializer", "CLASS", "Accepted: keys are text.", old=True),
    text("value-serializer", "CLASS", "Accepted: values are text.", old=True),
    flag("sync", "Accepted: every chunk of lines is acknowledged before the next."),
    flag("old-producer", "Accepted, without effect.", old=True),
    flag("new-producer", "Accepted, without effect.", old=True),
)


def produce(args: Arguments) -> int:
    args.require("topic")
    properties = ("producer-property", "command-property")
    settings = command_settings(args, "producer.config", properties=properties)
    hint(settings, "producer settings")
    run(
        args,
        partial(_produce, args, settings, KafkaLineReader.of(reader_properties(args))),
        settings,
        client_id="console-producer",
    )
    return 0


def reader_properties(args: Arguments) -> dict[str, str]:
    found: dict[str, str] = {}
    if args.has("reader-config"):
        found |= read_properties(args.text("reader-config"), "--reader-config")
    for name in ("property", "reader-property"):
        found |= name_values(args.all(name), f"--{name}")
    return found


def codec_of(args: Arguments, settings: Mapping[str, str]) -> "Codec":
    from penstock.record.compression import Codec

    name = settings.get("compression.type", "none")
    if args.has("compression-codec"):
        name = args.find("compression-codec") or "gzip"
    if name not in CODECS:
        raise UsageError(f"--compression-codec {name}: must be one of {', '.join(CODECS)}")
    return Codec[name.upper()]


def _options(args: Arguments) -> dict[str, str]:
    """Settings that have options of their own, which override properties."""
    names = {
        "batch-size": "batch.size",
        "max-partition-memory-bytes": "batch.size",
        "request-required-acks": "acks",
    }
    return {setting: args.text(name) for name, setting in names.items() if args.has(name)}


async def _produce(
    args: Arguments, settings: Mapping[str, str], reader: KafkaLineReader, client: "Client"
) -> None:
    from penstock.cli.lines import lines
    from penstock.client.new_producer import new_producer
    from penstock.client.produce import ProducerRecord, all_written
    from penstock.client.properties import batch_bytes, producer_settings
    from penstock.record_view.record_input import LONGEST_BYTES

    topic = args.text("topic")
    settings = {**settings, **_options(args)}
    wanted = replace(producer_settings(settings), codec=codec_of(args, settings))
    if wanted.transactional_id is not None:  # Kafka's tool fails at the first record
        raise ToolError(
            "transactional.id: this tool writes no transactions, "
            "but penstock produce --transactional-id does"
        )
    producer = new_producer(client, wanted, create_topics=True, batch_bytes=batch_bytes(settings))
    _prompt()
    async for some in lines(sys.stdin.buffer):
        records = []
        try:
            for line in some:
                if len(line) > LONGEST_BYTES:
                    raise ToolError(f"a line is longer than {LONGEST_BYTES} bytes")
                key, value, headers = reader.read(line.removesuffix(b"\r"))
                records.append(ProducerRecord(topic, value, key, headers))
        finally:
            if records:  # also the records before a malformed line
                all_written(await producer.deliver(records))
        _prompt()


def _prompt() -> None:
    if sys.stdin.isatty():
        print(">", end="", flush=True)


TOOL = Tool(
    Table(
        "kafka-console-producer",
        "This tool helps to read data from standard input and publish it to Kafka.",
        OPTIONS,
    ),
    produce,
    lambda error, _: f"{error}",
)
