"""The timestamps of records by their offsets, for lag in seconds."""

import asyncio
from collections.abc import Mapping

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
"""A leader sends the first batch of a request whole, however small the limit (KIP-74)."""
DECOMPRESSED_BYTES = 1 << 30


async def record_times(
    client: Client, positions: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, int]:
    """The timestamp in ms of the first record at or after each offset, where there is one."""

    async def attempt() -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for leader, partitions in (await client.by_leader(positions)).items():
            ids = {each.topic: (await client.topic(each.topic)).id for each in partitions}
            connection = await client.connection(ToBroker(leader))
            # One request for each: only the first partition of a request gets a whole batch.
            futures = {
                each: connection.send(
                    _request(each, positions[each], ids[each.topic]), FetchResponse
                )
                for each in partitions
            }
            async with asyncio.timeout(client.request_timeout_ms / 1000):
                for each, future in futures.items():
                    time_ms = _first_time(each, positions[each], await future)
                    if time_ms is not None:
                        found[each] = time_ms
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


def _first_time(partition: TopicPartition, offset: Offset, response: FetchResponse) -> int | None:
    check(response.error_code, f"records of {partition}")
    for topic in response.responses:
        for each in topic.partitions:
            assert isinstance(each.records, Buffer | None), "a decoded response is in memory"
            if each.error_code or not each.records:  # retention may have taken the offset
                return None
            try:
                for header, records in visible(each.records, None, DECOMPRESSED_BYTES):
                    for record in records:
                        if record.offset >= offset:
                            return record.timestamp
                    return header.max_timestamp
            except CorruptBatch:
                return None
    return None
