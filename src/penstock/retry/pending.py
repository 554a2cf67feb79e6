"""The waiting records of a delay or retry topic, found from the log and the progress alone.

The service's own index is not used: it may be a file on another machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.config.delay_route import RetryRoute, Route
from penstock.record.dead_letter import ATTEMPT, ERROR, read_dead_letter
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.policy import SCHEDULE
from penstock.retry.selection import Selection
from penstock.retry.state_topic import known_progress
from penstock.retry.store.index import DueKind, Entry, IndexKey
from penstock.types import Offset, TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class Pending:
    """A waiting record; sorted by order of delivery."""

    due_ms: int
    """0: due at once."""
    partition: TopicPartition
    offset: int
    key: bytes | None
    attempt: int | None
    """Number of the next attempt, for a retry."""
    schedule: str | None
    error: str | None
    timestamp_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PendingSelection:
    """The selected waiting records, and the index keys of their partitions."""

    found: list[Pending]
    keys: Mapping[TopicPartition, IndexKey]


async def find_pending(
    client: Client, route: Route, selection: Selection, now_ms: int
) -> PendingSelection:
    """The records in order of delivery. Needs about 300 bytes of memory for each selected one."""
    topic = await client.retrying(lambda: client.topic(route.topic))
    keys = {TopicPartition(topic.name, each): IndexKey(topic.id, each) for each in topic.partitions}
    progress = await known_progress(client, keys.values())
    starts = await list_offsets(client, dict.fromkeys(keys, EARLIEST))
    ends = await list_offsets(
        client, dict.fromkeys(keys, LATEST), isolation=IsolationLevel.READ_COMMITTED
    )
    partitions = {
        each: DelayPartition(each, key, route, progress[key]) for each, key in keys.items()
    }
    found: dict[tuple[TopicPartition, int], Pending] = {}
    begin = {each: max(progress[key].read_to, starts[each].offset) for each, key in keys.items()}
    async with SimpleConsumer(
        client,
        begin,
        ends={each: max(begin[each], Offset(ends[each].offset)) for each in keys},
        isolation=IsolationLevel.READ_COMMITTED,
    ) as consumer:
        async for each in consumer:
            # Retries wait from when the service read them: about when they were written.
            at_ms = each.record.timestamp if isinstance(route, RetryRoute) else now_ms
            for entry in partitions[each.partition].read(each.record, at_ms):
                if entry.kind in (DueKind.RECORD, DueKind.SCHEDULE, DueKind.DEAD):
                    pending = _pending(each.partition, each.record, entry, route)
                    letter = read_dead_letter(each.record.headers)
                    if selection.has(each.partition, each.record, letter, entry.due_ms):
                        found[each.partition, entry.offset] = pending
                else:
                    gone = entry.origin if entry.kind is DueKind.CANCEL else entry.offset
                    found.pop((each.partition, gone), None)
    return PendingSelection(sorted(found.values()), keys)


def _pending(partition: TopicPartition, record: Record, entry: Entry, route: Route) -> Pending:
    headers = dict(record.headers)
    schedule = headers.get(SCHEDULE) if entry.kind is DueKind.SCHEDULE else None
    return Pending(
        entry.due_ms,
        partition,
        record.offset,
        record.key,
        _attempt(headers.get(ATTEMPT)) if isinstance(route, RetryRoute) else None,
        None if schedule is None else schedule.decode(errors="replace"),
        _text(headers.get(ERROR)),
        record.timestamp,
        len(record.key or b"") + len(record.value or b""),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _attempt(header: bytes | None) -> int | None:
    if header is None:
        return 1
    return int(header) + 1 if header.isdigit() and len(header) <= 9 else None
