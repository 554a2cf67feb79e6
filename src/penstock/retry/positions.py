"""Reads records again, by their offsets."""

from collections.abc import Iterator, Sequence
from typing import Final

from penstock.client.cluster import Client
from penstock.client.consume import OffsetOutOfRange, SimpleConsumer
from penstock.client.listing import EARLIEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.record.record import Record
from penstock.types import Offset, TopicPartition

NEAR: Final = 256
"""Offsets this near to each other are read together: a fetch returns what follows anyway."""


async def records_at(
    client: Client, partition: TopicPartition, offsets: Sequence[int]
) -> dict[int, Record]:
    """The records at these offsets; those that retention or compaction removed are missing."""
    found: dict[int, Record] = {}
    start = (await list_offsets(client, {partition: EARLIEST}))[partition].offset
    for run in _runs(sorted(each for each in offsets if each >= start)):
        wanted = set(run)
        async with SimpleConsumer(
            client,
            {partition: Offset(run[0])},
            ends={partition: Offset(run[-1] + 1)},
            isolation=IsolationLevel.READ_COMMITTED,
            max_wait_ms=0,
        ) as consumer:
            try:
                async for each in consumer:
                    if each.record.offset in wanted:
                        found[each.record.offset] = each.record
            except OffsetOutOfRange:
                continue  # deleted meanwhile
    return found


def _runs(offsets: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for each in offsets:
        if run and each - run[-1] > NEAR:
            yield run
            run = []
        run.append(each)
    if run:
        yield run
