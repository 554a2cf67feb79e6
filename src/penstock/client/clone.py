"""Creates a topic like another one, and copies its records."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.client.admin import NewTopic, create_topic, describe_topics
from penstock.client.cluster import Client
from penstock.client.configs import overrides
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.metadata import replication_factor
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.types import TopicPartition


class Cloned(NamedTuple):
    """The size of the new topic."""

    partitions: int
    records: int


async def clone_topic(
    client: Client,
    source: str,
    target: str,
    *,
    records: bool,
    on_progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> Cloned:
    """Create `target` with the partitions, replicas and settings of `source`. Its committed
    records, if wanted, keep key, value, headers, timestamp and partition; offsets begin at 0.
    """
    (found,) = await describe_topics(client, [source])
    own = await overrides(client, source)
    new = NewTopic(
        name=target,
        partitions=len(found.partitions),
        replication_factor=replication_factor(found),
        configs={name: each.value or "" for name, each in own.items()},
    )
    await create_topic(client, new)
    partitions = [TopicPartition(source, index) for index in found.partitions]
    copied = await copy_records(client, partitions, target, on_progress) if records else 0
    return Cloned(len(partitions), copied)


async def copy_records(
    client: Client,
    partitions: Sequence[TopicPartition],
    target: str,
    on_progress: Callable[[int, int], object],
) -> int:
    isolation = IsolationLevel.READ_COMMITTED
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    listed = await list_offsets(client, dict.fromkeys(partitions, LATEST), isolation=isolation)
    begin = {tp: each.offset for tp, each in starts.items()}
    ends = {tp: each.offset for tp, each in listed.items()}
    producer, copied = IdempotentProducer(client), 0
    total = sum(ends[tp] - begin[tp] for tp in partitions)
    async with SimpleConsumer(client, begin, ends=ends, isolation=isolation) as reader:
        while reader.unfinished:
            some = await reader.poll()
            await producer.send([like(each, target) for each in some])
            copied += len(some)
            on_progress(sum(reader.positions[tp] - begin[tp] for tp in partitions), total)
    return copied


def like(consumed: ConsumedRecord, target: str) -> ProducerRecord:
    record = consumed.record
    return ProducerRecord(
        target,
        record.value,
        record.key,
        list(record.headers),
        consumed.partition.partition,
        record.timestamp,
    )
