"""`kafka-get-offsets.sh`, formerly `GetOffsetShell`: prints partition offsets by time."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import BROKER_LIST, CLUSTER, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError
from penstock.kafka_tools.topic_pattern import topic_pattern

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.metadata import TopicMetadata

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_RANGE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

OPTIONS = (
    *CLUSTER,
    BROKER_LIST,
    text("topic-partitions", "topic1:1,topic2:0-3,...", "Topics with ranges of partitions."),
    text("topic", "TOPIC", "The topic; also a regular expression. [all topics]"),
    text("partitions", "0,1,...", "Ids of partitions. [all]"),
    text("time", "TIME", f"A timestamp in ms, or {', '.join(TIMES)}.", default="latest"),
    flag("exclude-internal-topics", "Leave out internal topics."),
    number("offsets", "N", "Accepted; one offset is shown.", old=True),
    number("max-wait-ms", "MS", "Accepted, without effect.", old=True),
)


def get_offsets(args: Arguments) -> int:
    if args.has("topic-partitions") and args.has("topic", "partitions"):
        raise UsageError("--topic-partitions cannot be used with --topic or --partitions")
    given = args.text("time")
    try:
        time = TIMES.get(given)
        time = int(given) if time is None else time
    except ValueError:
        raise ToolError(
            f"Malformed time argument {given}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or "
            "earliest-pending-upload, or a specified long format timestamp"
        ) from None
    run(args, partial(_print_offsets, args, time))
    return 0


async def _print_offsets(args: Arguments, time: int, client: "Client") -> None:
    from penstock.client.admin import list_topics
    from penstock.client.offsets import list_offsets
    from penstock.types import TopicPartition

    wanted = _filter(args)
    partitions = [
        TopicPartition(topic.name, index)
        for topic in await list_topics(client)
        if not (args.has("exclude-internal-topics") and topic.is_internal)
        for index in topic.partitions
        if wanted(topic, index)
    ]
    if not partitions:
        raise ToolError("Could not match any topic-partitions with the specified filters")
    found = await list_offsets(client, dict.fromkeys(partitions, time))
    for partition in sorted(found):
        # For a timestamp there is no offset (-1) if no record is that new.
        if found[partition].offset >= 0:
            print(f"{partition.topic}:{partition.partition}:{found[partition].offset}")


def _filter(args: Arguments) -> "Callable[[TopicMetadata, int], bool]":
    ranges = args.find("topic-partitions")
    if ranges is not None:
        wanted = [_range(each) for each in ranges.split(",")]
        return lambda topic, index: any(each(topic.name, index) for each in wanted)
    pattern = topic_pattern(args.find("topic") or ".*")
    listed = args.find("partitions")
    try:
        indexes = None if listed is None else {int(each) for each in listed.split(",") if each}
    except ValueError:
        raise ToolError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{listed}"
        ) from None
    return lambda topic, index: (
        pattern.fullmatch(topic.name) is not None and (indexes is None or index in indexes)
    )


def _range(rule: str) -> Callable[[str, int], bool]:
    """Parse `topic`, `topic:1`, `topic:0-3` (without 3), `topic:5-` or `topic:-3`."""
    match = _RANGE.fullmatch(rule)
    if match is None:
        raise ToolError(f"Invalid rule specification: {rule}")
    name, single, low, high = match.groups()
    pattern = topic_pattern(name or ".*")

    def passes(topic: str, index: int) -> bool:
        if pattern.fullmatch(topic) is None:
            return False
        if single:
            return index == int(single)
        return int(low or 0) <= index and (not high or index < int(high))

    return passes


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.kafka_tools.messages import refusal_text

    return f"Error occurred: {refusal_text(error)}"


TOOL = Tool(
    Table("kafka-get-offsets", "Offsets of topics and partitions.", OPTIONS), get_offsets, failed
)
