"""`kafka-replica-verification.sh`: compares the replicas of topics until it is stopped."""

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import BOOTSTRAP, BROKER_LIST, COMMAND_CONFIG, Table, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.metadata import TopicMetadata
    from penstock.kafka_tools.replica_check import HeldBatch
    from penstock.types import BrokerId, TopicPartition
    from penstock.wire.messages.fetch import FetchRequest, PartitionData

OPTIONS = (
    BOOTSTRAP,
    BROKER_LIST,
    COMMAND_CONFIG,
    text("topics-include", "REGEX", "Topics.", default=".*", also=("topic-white-list",)),
    number("fetch-size", "BYTES", "Of one fetch.", default=1 << 20),
    number("max-wait-ms", "MS", "How long a fetch waits.", default=1000),
    number("time", "MS", "Start at this time; -1: the end, -2: the beginning.", default=-1),
    number("report-interval-ms", "MS", "How often to report.", default=30_000),
)


def verify(args: Arguments) -> int:
    if not args.has("broker-list", "bootstrap-server"):
        args.require("broker-list")
    try:
        re.compile(args.text("topics-include"))
    except re.error:
        raise UsageError(f"{args.text('topics-include')} is an invalid regex.") from None
    run(args, partial(_verify, args), client_id="replica-verification")
    return 0


async def _verify(args: Arguments, client: "Client") -> None:
    from penstock.client.admin import list_topics
    from penstock.client.offsets import list_offsets
    from penstock.kafka_tools.replica_check import Checked, checked
    from penstock.types import TopicPartition

    pattern = re.compile(args.text("topics-include").replace(",", "|"))
    topics = {each.name: each for each in await list_topics(client) if pattern.fullmatch(each.name)}
    partitions = [
        TopicPartition(name, index) for name, each in topics.items() for index in each.partitions
    ]
    if not partitions:
        raise ToolError(
            "No topics found. [topics-include] if specified, is either filtering out all topics or "
            "there is no topic."
        )
    found = await list_offsets(client, dict.fromkeys(partitions, args.number("time")))
    offsets = {each: max(at.offset, 0) for each, at in found.items()}
    _print("verification process is started")
    every_s, reported = args.number("report-interval-ms") / 1000, time.monotonic()
    while True:
        held = await _fetched(args, client, topics, offsets)
        results: dict[TopicPartition, Checked] = {}
        for each, replicas in held.items():
            batches = {broker: found for broker, (found, _) in replicas.items()}
            known = max(mark for _, mark in replicas.values())
            results[each] = checked(each, offsets[each], batches, known)
            offsets[each] = results[each].next_offset
            if results[each].difference is not None:
                _print(str(results[each].difference))
        if results and time.monotonic() - reported >= every_s:
            worst = max(sorted(results), key=lambda each: results[each].lag)
            _print(
                f"max lag is {results[worst].lag} for partition {worst} at offset "
                f"{offsets[worst]} among {len(results)} partitions"
            )
            reported = time.monotonic()


async def _fetched(
    args: Arguments,
    client: "Client",
    topics: "dict[str, TopicMetadata]",
    offsets: "dict[TopicPartition, int]",
) -> "dict[TopicPartition, dict[BrokerId, tuple[list[HeldBatch], int]]]":
    """The batches of each replica from the offsets on, and its high watermark."""
    from penstock.client.errors import check
    from penstock.client.route import ToBroker
    from penstock.types import TopicPartition
    from penstock.wire.messages.fetch import FetchResponse

    of_broker: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for each in offsets:
        for broker in topics[each.topic].partitions[each.partition].replicas:
            of_broker[broker].append(each)
    names = {each.id: name for name, each in topics.items()}
    held: dict[TopicPartition, dict[BrokerId, tuple[list[HeldBatch], int]]] = defaultdict(dict)
    wait_ms = args.number("max-wait-ms")
    for broker, partitions in of_broker.items():
        connection = await client.connection(ToBroker(broker))
        response = await connection.call(
            _request(args, topics, partitions, offsets, wait_ms),
            FetchResponse,
            timeout_ms=wait_ms + client.request_timeout_ms,
        )
        # Wait only in the first fetch: other replicas have the same records, or will soon.
        wait_ms = 0
        check(response.error_code, f"fetch from broker {broker}")
        for topic in response.responses:
            for found in topic.partitions:
                name = topic.topic or names[topic.topic_id]
                tp = TopicPartition(name, found.partition_index)
                check(found.error_code, f"fetch of {tp} from broker {broker}")
                held[tp][broker] = _batches(found, offsets[tp]), found.high_watermark
    return held


def _request(
    args: Arguments,
    topics: "dict[str, TopicMetadata]",
    partitions: "Sequence[TopicPartition]",
    offsets: "dict[TopicPartition, int]",
    wait_ms: int,
) -> "FetchRequest":
    from penstock.client.listing import by_topic
    from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    size = args.number("fetch-size")
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=size * len(partitions),
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topics[name].id,
                partitions=[
                    FetchPartition(
                        partition=each.partition,
                        fetch_offset=offsets[each],
                        partition_max_bytes=size,
                    )
                    for each in wanted
                ],
            )
            for name, wanted in by_topic(partitions).items()
        ],
    )


def _batches(fetched: "PartitionData", offset: int) -> "list[HeldBatch]":
    from penstock.kafka_tools.replica_check import HeldBatch
    from penstock.record.batch import batches
    from penstock.types import Buffer

    assert isinstance(fetched.records, Buffer | None), "decoded records are in memory"
    whole = memoryview(fetched.records or b"")
    return [
        HeldBatch(header.last_offset, header.crc)
        for _, header in batches(whole)
        if header.last_offset >= offset
    ]


def _print(sentence: str) -> None:
    now = datetime.now().astimezone()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {sentence}", flush=True)


TOOL = Tool(
    Table(
        "kafka-replica-verification",
        "Validate that all replicas for a set of topics have the same data.",
        OPTIONS,
    ),
    verify,
    lambda error, _: f"{error}",
)
