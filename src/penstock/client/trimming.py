"""Deletes the first records of partitions, or all records of a topic."""

from collections.abc import Mapping
from typing import Any

from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import delete_records, list_offsets
from penstock.types import Offset, TopicPartition


async def emptied(client: Client, topic: str) -> list[dict[str, Any]]:
    """Delete all records that are there now; a row for each partition."""
    (found,) = await describe_topics(client, [topic])
    partitions = [TopicPartition(topic, index) for index in found.partitions]
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    return await trimmed(client, {tp: each.offset for tp, each in ends.items()}, execute=True)


async def trimmed(
    client: Client, before: Mapping[TopicPartition, Offset], *, execute: bool
) -> list[dict[str, Any]]:
    """Delete the records before the offsets; a row for each partition."""
    starts = await list_offsets(client, dict.fromkeys(before, EARLIEST))
    after = await delete_records(client, before) if execute else before
    return [row(tp, starts[tp].offset, after[tp], executed=execute) for tp in sorted(before)]


def row(tp: TopicPartition, before: int, after: int, *, executed: bool) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "before": before,
        "after": max(before, after),
        "deleted": max(after - before, 0),
        "executed": executed,
    }
