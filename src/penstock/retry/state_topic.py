"""The compacted topic with the progress of all delay topics, out of order.

It is written in the transactions that deliver, so it says exactly what was delivered.
"""

import logging
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.record_sender import ProducerRecord
from penstock.client.state_replicas import state_replicas
from penstock.counted import counted
from penstock.errors import ErrorCode
from penstock.retry.history import HEADER, History, UnreadableState
from penstock.retry.progress import Bitmaps, Progress, StateKey, decode_floor
from penstock.retry.store.index import IndexKey
from penstock.types import Offset, TopicPartition

STATE_TOPIC: Final = "__penstock_delay_state"
REDRIVE_TOPIC: Final = "__penstock_redrive_state"
"""The same format, for dead letters that were redriven or purged."""
PARTITIONS: Final = 8

log = logging.getLogger(__name__)


async def create_state_topic(client: Client, name: str = STATE_TOPIC) -> None:
    """Create the topic if it is missing; an existing one needs no right to create topics."""
    if await client.existing_topics([name]):
        return
    topic = NewTopic(
        name=name,
        partitions=PARTITIONS,
        replication_factor=await state_replicas(client),
        configs={"cleanup.policy": "compact", "segment.bytes": str(16 << 20)},
    )
    try:
        await create_topic(client, topic)
    except BrokerRefused as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    await client.retrying(lambda: client.topic(name), retry_on=RETRIABLE)


def state_partition(key: IndexKey) -> int:
    """The state partition for a partition's progress; fixed, since PARTITIONS never changes."""
    return zlib.crc32(key.topic_id + b"%d" % key.partition) % PARTITIONS


def state_records(
    key: IndexKey, progress: Progress, topic: str = STATE_TOPIC
) -> Iterator[ProducerRecord]:
    """The records with the staged changes, for the open transaction."""
    floor, history = (None, b"%d" % progress.staged_floor()), progress.history
    epochs = [(HEADER, history.encode())] if history.runs or history.rewinds else []
    for chunk, value in (*progress.staged_values(), floor):
        yield ProducerRecord(
            topic,
            value,
            key=StateKey(key.topic_id, key.partition, chunk).encode(),
            headers=epochs if chunk is None else (),
            partition=state_partition(key),
        )


async def load_progress(
    client: Client, keys: Iterable[IndexKey], topic: str = STATE_TOPIC
) -> dict[IndexKey, Progress]:
    """The progress of these partitions.

    Their former owner may have a transaction open that will still be committed or aborted. So this
    reads up to the end of the log, which waits until that is decided.
    """
    wanted = set(keys)
    partitions = [TopicPartition(topic, each) for each in {state_partition(k) for k in wanted}]
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    foreign: list[ConsumedRecord] = []
    floors: dict[IndexKey, Offset] = {}
    histories: dict[IndexKey, History] = {}
    chunks: dict[IndexKey, dict[int, Bitmaps]] = {each: {} for each in wanted}
    async with SimpleConsumer(
        client,
        {each: found.offset for each, found in starts.items()},
        ends={each: found.offset for each, found in ends.items()},
        isolation=IsolationLevel.READ_COMMITTED,
        max_wait_ms=50,
    ) as consumer:
        async for each in consumer:
            found = state_key(each.record.key)
            if found is None:
                foreign.append(each)
                continue
            key, value = IndexKey(found.topic_id, found.partition), each.record.value
            if key not in wanted:
                continue
            if found.chunk is None:
                floors[key] = decode_floor(value)
                epochs = dict(each.record.headers).get(HEADER)
                histories[key] = History() if epochs is None else History.decode(epochs)
            elif value is None:
                with suppress(KeyError):
                    del chunks[key][found.chunk]
            else:
                chunks[key][found.chunk] = Bitmaps.decode(value)
    if foreign:
        first = foreign[0]
        log.warning(
            "%s: skipped %s that no delay service wrote, the first at offset %d, key %r",
            first.partition,
            counted(len(foreign), "record"),
            first.record.offset,
            first.record.key,
        )
    return {
        each: Progress(floors.get(each, Offset(0)), chunks[each], histories.get(each))
        for each in wanted
    }


def state_key(key: bytes | None) -> StateKey | None:
    """None: another program wrote the record."""
    try:
        return StateKey.decode(key or b"")
    except UnreadableState:
        return None


async def known_progress(
    client: Client, keys: Iterable[IndexKey], topic: str = STATE_TOPIC
) -> dict[IndexKey, Progress]:
    """Like `load_progress`; without a state topic, nothing is done yet."""
    wanted = list(keys)
    if await client.existing_topics([topic]):
        return await load_progress(client, wanted, topic)
    return {each: Progress(Offset(0), {}) for each in wanted}
