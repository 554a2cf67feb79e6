"""Deletes the beginning of partitions, and shows it."""

from collections.abc import Mapping
from typing import Any

from penstock.cli.output import Column
from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST
from penstock.client.offsets import delete_records, list_offsets
from penstock.types import Offset, TopicPartition

COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("START", "before"),
    Column("NEW START", "after"),
    Column("DELETED", "deleted"),
)


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
