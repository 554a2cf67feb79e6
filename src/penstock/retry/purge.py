"""Deletes dead letters.

Kafka deletes only from the beginning of a partition. So a purged letter is marked, which hides it
from lists and redrives; it is deleted once all letters before it are redriven or purged too.

A topic that is not named for dead letters may hold other records: those stay.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from penstock.client.cluster import Client
from penstock.client.offsets import delete_records
from penstock.record.dead_letter import is_named_for_letters
from penstock.retry.letters import Letter, LetterTopic, open_letters, read_letters
from penstock.retry.progress import Outcome
from penstock.retry.redrive import LetterMarks
from penstock.retry.selection import EVERYTHING, Selection
from penstock.types import Offset, TopicPartition

BATCH: Final = 5000


@dataclass(frozen=True, slots=True)
class Purged:
    """How many letters are hidden now, and how many offsets were deleted."""

    purged: int
    deleted: int


async def count_letters(client: Client, topic: str, selection: Selection) -> int:
    """How many letters a purge would hide."""
    letters = await open_letters(client, topic)
    return sum([1 async for _ in _to_purge(client, letters, selection)])


async def purge(client: Client, topic: str, selection: Selection) -> Purged:
    """Purge the selected letters. If it raises, run it again."""
    purged = 0
    async with LetterMarks(client, topic) as marks:
        marked: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        count = 0
        async for each in _to_purge(client, marks.letters, selection):
            marked[each.partition].append(each.record.offset)
            count += 1
            if count == BATCH:
                await _mark(marks, marked)
                purged, count = purged + count, 0
                marked.clear()
        if count:
            await _mark(marks, marked)
        purged += count
        return Purged(purged, await _delete_done(client, marks))


async def _to_purge(
    client: Client, topic: LetterTopic, selection: Selection
) -> AsyncIterator[Letter]:
    named = is_named_for_letters(topic.name)
    async for each in read_letters(client, topic, selection):
        if named or each.dead is not None:
            yield each


async def _mark(marks: LetterMarks, marked: dict[TopicPartition, list[int]]) -> None:
    await marks.producer.begin()
    await marks.commit(marked, Outcome.CANCELLED)


async def _delete_done(client: Client, marks: LetterMarks) -> int:
    """Delete the letters of each partition before the first one that is not done."""
    letters = marks.letters
    first = dict(letters.ends)
    async for each in read_letters(client, letters, EVERYTHING):
        partition = each.partition
        first[partition] = min(first[partition], Offset(each.record.offset))
    done = {each: at for each, at in first.items() if at > letters.starts[each]}
    if done:
        await delete_records(client, done)
    return sum(at - letters.starts[each] for each, at in done.items())
