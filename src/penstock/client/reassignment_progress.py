"""Reports how far partition reassignments have got."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.client.cluster import Client
from penstock.client.log_dirs import describe_log_dirs
from penstock.client.reassignment import OngoingReassignment
from penstock.types import BrokerId, TopicPartition


async def progress(
    client: Client, moving: Mapping[TopicPartition, OngoingReassignment]
) -> list[dict[str, Any]]:
    """Rows with the bytes that the added replicas have, and the bytes that their leaders have."""
    if not moving:
        return []
    sizes: dict[tuple[TopicPartition, BrokerId], int] = {}
    for broker in (await client.cluster()).brokers:
        for directory in await describe_log_dirs(client, broker, moving):
            for tp, replica in directory.replicas.items():
                sizes[tp, broker] = replica.size
    rows = []
    for tp, each in sorted(moving.items()):
        largest = max((sizes.get((tp, broker), 0) for broker in each.replicas), default=0)
        copied = sum(sizes.get((tp, broker), 0) for broker in each.adding)
        rows.append(progress_row(tp, each.adding, copied, largest * len(each.adding)))
    return rows


def progress_row(
    tp: TopicPartition, adding: Sequence[int], copied_bytes: int, total_bytes: int
) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "adding": list(adding),
        "copied_bytes": min(copied_bytes, total_bytes),
        "total_bytes": total_bytes,
    }
