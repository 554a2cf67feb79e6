"""The next batch to be read by each group: its time, for lag in seconds, and its size."""

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.isolation import visible
from penstock.client.route import ToBroker
from penstock.record.batch import CorruptBatch
from penstock.types import BrokerId, Buffer, Offset, TopicPartition, Uuid
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

ONE_BATCH_BYTES = 1
"""A leader sends the first batch of a request whole, however small the limit is (KIP-74)."""
DECOMPRESSED_BYTES = 1 << 30


class NextBatch(NamedTuple):
    """The timestamp in ms of the first record at or after an offset, and its batch's size."""

    time_ms: int
    size_bytes: int


class RecordPosition(NamedTuple):
    """The next offset that a group reads."""

    partition: TopicPartition
    offset: Offset


async def record_times(
    client: Client, positions: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, int]:
    """The timestamp in ms of the first record at or after each offset, where there is one."""
    return {tp: each.time_ms for tp, each in (await next_batches(client, positions)).items()}


async def next_batches(
    client: Client, positions: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, NextBatch]:
    """The first batch at or after each offset, where there is one."""
    found = await batches_at(client, [RecordPosition(*each) for each in positions.items()])
    return {position.partition: batch for position, batch in found.items()}


async def batches_at(
    client: Client, positions: Collection[RecordPosition]
) -> dict[RecordPosition, NextBatch]:
    """Like `next_batches`, but a partition may have several positions."""

    async def attempt() -> dict[RecordPosition, NextBatch]:
        found: dict[RecordPosition, NextBatch] = {}
        leaders = await client.by_leader({each.partition for each in positions})
        leader_of = {tp: leader for leader, led in leaders.items() for tp in led}
        ids = {tp.topic: (await client.topic(tp.topic)).id for tp in leader_of}
        for leader in leaders:
            connection = await client.connection(ToBroker(leader))
            # One request per position: only the first partition of a request gets a whole batch.
            futures = {
                each: connection.send(_request(*each, ids[each.partition.topic]), FetchResponse)
                for each in positions
                if leader_of.get(each.partition) == leader
            }
            async with asyncio.timeout(client.request_timeout_ms / 1000):
                for each, future in futures.items():
                    batch = _first(*each, await future)
                    if batch is not None:
                        found[each] = batch
        return found

    return await client.retrying(attempt)


def _request(partition: TopicPartition, offset: Offset, topic_id: Uuid) -> FetchRequest:
    return FetchRequest(
        replica_id=BrokerId(-1),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=ONE_BATCH_BYTES,
        topics=[
            FetchTopic(
                topic=partition.topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=partition.partition,
                        fetch_offset=offset,
                        partition_max_bytes=ONE_BATCH_BYTES,
                    )
                ],
            )
        ],
    )


def _first(partition: TopicPartition, offset: Offset, response: FetchResponse) -> NextBatch | None:
    check(response.error_code, f"records of {partition}")
    for topic in response.responses:
        for each in topic.partitions:
            assert isinstance(each.records, Buffer | None), "a decoded response is in memory"
            if each.error_code or not each.records:  # retention may have deleted the offset
                return None
            try:
                for header, records in visible(each.records, None, DECOMPRESSED_BYTES):
                    for record in records:
                        if record.offset >= offset:
                            return NextBatch(record.timestamp, header.size_bytes)
                    return NextBatch(header.max_timestamp, header.size_bytes)
            except CorruptBatch:
                return None
    return None
