"""The compacted topic that has the progress of all delay topics, out of order.

It is written in the transactions that deliver, so it says what was delivered, and nothing else.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from penstock.client.admin import NewTopic, create_topic, describe_cluster
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.record_sender import ProducerRecord
from penstock.errors import ErrorCode
from penstock.retry.progress import Bitmaps, Progress, StateKey
from penstock.retry.store.index import IndexKey
from penstock.types import Offset, TopicPartition

STATE_TOPIC: Final = "__penstock_delay_state"
PARTITIONS: Final = 8
REPLICAS: Final = 3


async def create_state_topic(client: Client) -> None:
    """Make it, unless it is there."""
    cluster = await describe_cluster(client)
    topic = NewTopic(
        name=STATE_TOPIC,
        partitions=PARTITIONS,
        replication_factor=min(REPLICAS, len(cluster.brokers)),
        configs={"cleanup.policy": "compact", "segment.bytes": str(16 << 20)},
    )
    try:
        await create_topic(client, topic)
    except BrokerRefused as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    await client.retrying(lambda: client.topic(STATE_TOPIC), retry_on=RETRIABLE)


def state_partition(key: IndexKey) -> int:
    """Where a partition's progress is. Never changes: the topic keeps its partitions."""
    return zlib.crc32(key.topic_id + b"%d" % key.partition) % PARTITIONS


def state_records(key: IndexKey, progress: Progress) -> Iterator[ProducerRecord]:
    """What the open transaction of the progress writes."""
    floor = (None, b"%d" % progress.staged_floor())
    for chunk, value in (*progress.staged_values(), floor):
        yield ProducerRecord(
            STATE_TOPIC,
            value,
            key=StateKey(key.topic_id, key.partition, chunk).encode(),
            partition=state_partition(key),
        )


async def load_progress(client: Client, keys: Iterable[IndexKey]) -> dict[IndexKey, Progress]:
    """The progress of these partitions.

    Whoever had them before may have a transaction open that will be committed or aborted without
    us; so it is read up to the end of the log, which takes until that is decided.
    """
    wanted = set(keys)
    partitions = [
        TopicPartition(STATE_TOPIC, each) for each in {state_partition(k) for k in wanted}
    ]
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    floors: dict[IndexKey, Offset] = {}
    chunks: dict[IndexKey, dict[int, Bitmaps]] = {each: {} for each in wanted}
    async with SimpleConsumer(
        client,
        {each: found.offset for each, found in starts.items()},
        ends={each: found.offset for each, found in ends.items()},
        isolation=IsolationLevel.READ_COMMITTED,
        max_wait_ms=50,
    ) as consumer:
        async for each in consumer:
            if each.record.key is None:
                continue
            found = StateKey.decode(each.record.key)
            key, value = IndexKey(found.topic_id, found.partition), each.record.value
            if key not in wanted:
                continue
            if found.chunk is None:
                floors[key] = Offset(int(value or b"0"))
            elif value is None:
                with suppress(KeyError):
                    del chunks[key][found.chunk]
            else:
                chunks[key][found.chunk] = Bitmaps.decode(value)
    return {each: Progress(floors.get(each, Offset(0)), chunks[each]) for each in wanted}
