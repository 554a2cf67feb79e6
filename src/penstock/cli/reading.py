"""Reads records for `consume`: ranges of partitions, the newest records, or as a group member."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.cli.frame.terminal import warn
from penstock.cli.position import warn_of_nearest
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.position import BEGINNING, END, Position, Since, find_offsets, offsets_at
from penstock.types import Offset, TopicPartition

if TYPE_CHECKING:
    from penstock.client.group_consumer import GroupConsumer
    from penstock.client.group_settings import GroupSettings


class Sink(Protocol):
    """Takes records until it is done."""

    @property
    def is_done(self) -> bool: ...

    def take(self, some: Sequence[ConsumedRecord]) -> int:
        """Take records; returns how many were used. Fewer than all only if the sink is done."""
        ...


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Start and end positions, and partitions; empty `chosen`: all."""

    start: Position | None
    until: Position | None
    isolation: IsolationLevel
    chosen: Sequence[int] = ()

    async def partitions(self, client: Client, topics: Sequence[str]) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, index)
            for topic in await describe_topics(client, topics)
            for index in self.chosen or topic.partitions
        ]


async def read_range(
    client: Client, topics: Sequence[str], where: ReadRange, sink: Sink, *, follow: bool
) -> None:
    partitions = await where.partitions(client, topics)
    start = where.start or BEGINNING
    found = await find_offsets(client, partitions, start, where.isolation)
    if start.since is not Since.END:  # the last ten of seven records are just all seven
        warn_of_nearest(found)
    begin = {each: at.offset for each, at in found.items()}
    end = where.until or END
    ends = None if follow else await offsets_at(client, partitions, end, where.isolation)
    async with SimpleConsumer(client, begin, ends=ends, isolation=where.isolation) as reader:
        while reader.unfinished and not sink.is_done:
            sink.take(await reader.poll())


async def read_last(
    client: Client, topics: Sequence[str], count: int, where: ReadRange, sink: Sink
) -> None:
    """Read the newest records of all partitions, in timestamp order.

    Compaction and transaction markers leave gaps, so a partition with too few records in its last
    offsets is read from further back.
    """
    partitions = await where.partitions(client, topics)
    ends = await offsets_at(client, partitions, where.until or END, where.isolation)
    start = await offsets_at(client, partitions, BEGINNING, where.isolation)
    newest: list[ConsumedRecord] = []
    found: Counter[TopicPartition] = Counter()
    reach = count
    while ends:
        begin = {each: Offset(max(start[each], at - reach)) for each, at in ends.items()}
        async with SimpleConsumer(client, begin, ends=ends, isolation=where.isolation) as reader:
            while reader.unfinished:
                some = await reader.poll()
                found.update(each.partition for each in some)
                newest = sorted([*newest, *some], key=_age)[-count:]
        ends = {each: at for each, at in begin.items() if found[each] < count and at > start[each]}
        reach *= 2
    sink.take(newest)


def _age(each: ConsumedRecord) -> tuple[int, TopicPartition, int]:
    return each.record.timestamp, each.partition, each.record.offset


async def read_as_member(
    client: Client,
    group: str,
    topics: Sequence[str],
    pattern: str | None,
    settings: "GroupSettings",
    sink: Sink,
    *,
    follow: bool,
) -> None:
    """Read the member's partitions, and commit what the sink has taken.

    Without `follow` it ends when the assigned partitions are read to the end, or when this member
    got no partition within the client's timeout.
    """
    from penstock.client.group_consumer import GroupConsumer  # late: rarely needed

    async with GroupConsumer(client, group, settings) as consumer:
        consumer.subscribe(topics if pattern is None else (), pattern=pattern)
        patience_s = client.timeout_ms / 1000
        idle_since = time.monotonic()
        while not sink.is_done:
            some = await consumer.poll()
            if consumer.assignment:
                idle_since = time.monotonic()
            elif not follow and time.monotonic() - idle_since > patience_s:
                warn(f"this member of {group} was assigned no partition within {patience_s:g} s")
                return
            if some:
                taken = sink.take(some)
                await _commit(consumer, some[:taken] if taken < len(some) else None)
            elif not follow and await _is_at_end(client, consumer, settings.isolation):
                return


async def _commit(consumer: "GroupConsumer", some: Sequence[ConsumedRecord] | None) -> None:
    """Commit these records, or all. If the member lost their partitions, another member
    will read them.
    """
    from penstock.client.group_offsets import CommitFailed

    offsets: Mapping[TopicPartition, Offset] | None = None
    if some is not None:
        offsets = {each.partition: Offset(each.record.offset + 1) for each in some}
    try:
        await consumer.commit(offsets)
    except CommitFailed as error:
        warn(f"{error}; another member prints these records again")


async def _is_at_end(client: Client, consumer: "GroupConsumer", isolation: IsolationLevel) -> bool:
    assigned = consumer.assignment
    if not assigned:
        return False
    ends = await list_offsets(client, dict.fromkeys(assigned, LATEST), isolation=isolation)
    try:
        return all(consumer.position(each) >= end.offset for each, end in ends.items())
    except KeyError:  # the topic is missing at the moment
        return False
