"""One partition: segments and files of its replicas, producers, open transactions."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from penstock.advice.broker_page import page_of
from penstock.client.producers import NO_TRANSACTION, describe_producers
from penstock.console import model
from penstock.console.replicas import TIMEOUT_MS, Bar, picture, replica_pages
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ConfigError, KafkaError
from penstock.types import TopicPartition

Params = Mapping[str, str]


class SegmentFile(Struct, frozen=True):
    """A file of a segment."""

    name: str
    size_bytes: int


class Segment(Struct, frozen=True):
    """A segment from its broker's page `/segments`; offsets are from
    `base_offset` to `next_offset`.
    """

    broker: int
    partition: int
    base_offset: int
    next_offset: int
    size_bytes: int
    is_active: bool
    files: list[SegmentFile]


class Producer(Struct, frozen=True):
    """A producer that wrote to the partition; `transaction_start` is the first offset of
    its open transaction.
    """

    id: int
    epoch: int
    last_sequence: int
    last_ms: int
    transaction_start: int | None


class ReplicaSize(Struct, frozen=True):
    """A replica's log directory and size, from DescribeLogDirs."""

    broker: int
    log_dir: str
    size_bytes: int
    is_future: bool


class PartitionDetail(Struct, frozen=True):
    """A partition. Only brokers with HTTP pages report segments; Apache Kafka's have none."""

    partition: model.Partition
    replicas: list[Bar]
    sizes: list[ReplicaSize]
    segments: list[Segment]
    producers: list[Producer]
    producers_error: str | None
    """Why the producers are unknown."""

    @property
    def open_transactions(self) -> list[Producer]:
        return [each for each in self.producers if each.transaction_start is not None]


async def partition(
    watch: ClusterWatch, look: ClusterLook, given: Params
) -> PartitionDetail | None:
    topic, text = given["topic"], given["partition"]
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"partition: {text!r} is not a number")
    rows = model.partitions(look, topic) or []
    found = next((each for each in rows if str(each.partition) == text), None)
    if found is None:
        return None
    brokers = look.snapshot.cluster.brokers
    holders = [brokers[each] for each in brokers if each in found.replicas]
    query, kind = {"topic": topic}, list[Segment]
    async with asyncio.TaskGroup() as tasks:
        asking = [
            tasks.create_task(page_of(watch.client, each, "/segments", query, kind, TIMEOUT_MS))
            for each in holders
        ]
        pages = tasks.create_task(replica_pages(watch.client, holders, topic))
        writers = tasks.create_task(producers(watch, TopicPartition(topic, found.partition)))
    segments = [each for task in asking for each in task.result() or ()]
    who, why_not = writers.result()
    return PartitionDetail(
        found,
        picture(found, pages.result()),
        sizes(look, TopicPartition(topic, found.partition)),
        [each for each in segments if each.partition == found.partition],
        who,
        why_not,
    )


async def producers(watch: ClusterWatch, tp: TopicPartition) -> tuple[list[Producer], str | None]:
    """The partition's producers, or an error text: it may have no leader now, but the rest of the
    page is known.
    """
    try:
        found = await describe_producers(watch.client, [tp])
    except KafkaError as error:
        return [], str(error)
    return [
        Producer(
            each.id,
            each.epoch,
            each.last_sequence,
            each.last_timestamp,
            None if each.transaction_start == NO_TRANSACTION else each.transaction_start,
        )
        for each in found.get(tp, ())
    ], None


def sizes(look: ClusterLook, tp: TopicPartition) -> list[ReplicaSize]:
    return [
        ReplicaSize(broker, each.path, each.replicas[tp].size, each.replicas[tp].is_future)
        for broker, dirs in sorted(look.snapshot.log_dirs.items())
        for each in dirs
        if tp in each.replicas
    ]
