"""The usage of topics: bytes on disk, records, and unread records of groups."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.client.cluster import Client
from penstock.client.groups import committed_offsets, list_groups
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.log_dirs import describe_log_dirs
from penstock.client.metadata import NO_LEADER, TopicMetadata
from penstock.client.offsets import list_offsets
from penstock.types import Offset, TopicPartition


async def add_usage(
    client: Client,
    topics: Sequence[TopicMetadata],
    rows: Sequence[dict[str, Any]],
    *,
    size: bool,
    records: bool,
    lag: bool,
) -> None:
    """Set `size_bytes`, `records` and `lag` in the rows of the topics."""
    sizes = await sizes_of(client) if size else {}
    led = led_partitions(topics) if records or lag else []
    ends = offsets(await list_offsets(client, dict.fromkeys(led, LATEST)))
    starts = offsets(await list_offsets(client, dict.fromkeys(led, EARLIEST))) if records else {}
    lags = await lags_of(client, ends) if lag else {}
    held = Counter[str]()
    for tp, start in starts.items():
        held[tp.topic] += ends[tp] - start
    for row in rows:
        name = row["name"]
        row["size_bytes"] = sizes.get(name, 0) if size else None
        row["records"] = held[name] if records else None
        row["lag"] = lags.get(name, 0) if lag else None


def led_partitions(topics: Sequence[TopicMetadata]) -> list[TopicPartition]:
    """The partitions with a leader; others cannot report offsets."""
    return [
        TopicPartition(topic.name, each.index)
        for topic in topics
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    ]


def offsets(listed: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Offset]:
    return {tp: each.offset for tp, each in listed.items()}


async def sizes_of(client: Client) -> Mapping[str, int]:
    """Bytes on the disks of all brokers, by topic."""
    sizes = Counter[str]()
    for broker in (await client.cluster()).brokers:
        for directory in await describe_log_dirs(client, broker, None):
            for tp, replica in directory.replicas.items():
                sizes[tp.topic] += replica.size
    return sizes


async def lags_of(client: Client, ends: Mapping[TopicPartition, Offset]) -> Mapping[str, int]:
    """Unread records, summed over groups, by topic."""
    lags = Counter[str]()
    names = {each.id: each.name for each in await client.existing_topics(None)}
    for group in await list_groups(client):
        for tp, committed in (await committed_offsets(client, group.id, names)).items():
            if tp in ends:
                lags[tp.topic] += max(ends[tp] - committed.offset, 0)
    return lags
