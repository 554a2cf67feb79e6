"""Reads the dead letters of a topic, and which of them were redriven or purged.

A letter stays in its topic until retention or a purge deletes it; the compacted topic
`__penstock_redrive_state` says which letters are done.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.config.delay_route import Route
from penstock.record.dead_letter import DeadLetter, is_named_for_letters, read_dead_letter
from penstock.record.record import Record
from penstock.retry.progress import Outcome, Progress
from penstock.retry.selection import Selection
from penstock.retry.state_topic import REDRIVE_TOPIC, known_progress
from penstock.retry.store.index import IndexKey
from penstock.types import Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class Letter:
    """A record of a dead-letter topic; `dead` is None if its headers name no error."""

    partition: TopicPartition
    record: Record
    dead: DeadLetter | None


@dataclass(frozen=True, slots=True)
class LetterTopic:
    """A snapshot of a dead-letter topic: its offsets, and which letters are done."""

    name: str
    keys: Mapping[TopicPartition, IndexKey]
    starts: Mapping[TopicPartition, Offset]
    ends: Mapping[TopicPartition, Offset]
    progress: Mapping[TopicPartition, Progress]

    @property
    def size(self) -> int:
        """Offsets to read, for a progress bar."""
        return sum(self.ends[each] - self.starts[each] for each in self.keys)

    def outcome(self, partition: TopicPartition, offset: int) -> Outcome | None:
        """DELIVERED: redriven. CANCELLED: purged. None: neither."""
        return self.progress[partition].outcome(offset)


async def find_letter_topics(client: Client, routes: Mapping[str, Route]) -> list[str]:
    """Dead-letter topics, found by the routes or by their names."""
    named = {each.dead_letters for each in routes.values()}
    found = {each.name for each in await list_topics(client) if not each.is_internal}
    return sorted(each for each in found if each in named or is_named_for_letters(each))


async def open_letters(client: Client, topic: str) -> LetterTopic:
    """Take a snapshot of a topic; later letters are not part of it."""
    found = await client.retrying(lambda: client.topic(topic))
    keys = {TopicPartition(topic, each): IndexKey(found.id, each) for each in found.partitions}
    starts = await list_offsets(client, dict.fromkeys(keys, EARLIEST))
    ends = await list_offsets(
        client, dict.fromkeys(keys, LATEST), isolation=IsolationLevel.READ_COMMITTED
    )
    progress = await known_progress(client, keys.values(), REDRIVE_TOPIC)
    for partition, key in keys.items():
        progress[key].read(starts[partition].offset)  # forgets marks of deleted letters
    return LetterTopic(
        topic,
        keys,
        {each: starts[each].offset for each in keys},
        {each: ends[each].offset for each in keys},
        {each: progress[key] for each, key in keys.items()},
    )


async def read_letters(
    client: Client, topic: LetterTopic, selection: Selection, *, done: bool = False
) -> AsyncIterator[Letter]:
    """The selected letters, by offset in each partition; `done`: also redriven and purged ones."""
    starts, ends = _bounds(topic, selection)
    async with SimpleConsumer(
        client, starts, ends=ends, isolation=IsolationLevel.READ_COMMITTED
    ) as consumer:
        async for each in consumer:
            partition, record = each.partition, each.record
            if not done and topic.outcome(partition, record.offset) is not None:
                continue
            dead = read_dead_letter(record.headers)
            if selection.has(partition, record, dead, record.timestamp):
                yield Letter(partition, record, dead)


def _bounds(
    topic: LetterTopic, selection: Selection
) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
    """The ranges to read; with named positions, only those around them."""
    starts, ends = dict(topic.starts), dict(topic.ends)
    if not selection.positions:
        return starts, ends
    for each in topic.keys:
        offsets = [at for index, at in selection.positions if index == each.partition]
        first, last = min(offsets, default=ends[each]), max(offsets, default=starts[each])
        starts[each] = Offset(max(starts[each], min(first, ends[each])))
        ends[each] = Offset(max(starts[each], min(ends[each], last + 1)))
    return starts, ends
