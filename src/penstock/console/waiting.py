"""Delay and retry topics with their pending records, and dead letters, read on request.

Keys and values are shown only on the record's own page, which masks fields for viewers. Errors are
hidden here too if the header that has them is masked.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from penstock.config.delay_route import DelayRoute
from penstock.console.mask import MASKED
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.record.dead_letter import ERROR, FORMER, OURS, SHARE, is_named_for_letters
from penstock.retry.due_counts import due_counts
from penstock.retry.letters import (
    Letter,
    find_letter_topics,
    open_letters,
    read_letters,
)
from penstock.retry.pending import find_pending
from penstock.retry.routes import find_routes
from penstock.retry.selection import EVERYTHING

SHOWN = 500
"""The most rows of a page; counts include all records."""
ERROR_HEADERS = [name for name, ours in (OURS | FORMER | SHARE).items() if ours == ERROR]
Params = Mapping[str, str]


class DelayTopic(Struct, frozen=True):
    """A delay or retry topic, and how many records are pending, by when they are due."""

    topic: str
    kind: str
    to: str
    dead_letters: str | None
    pending: int
    due: dict[str, int]
    next_due_ms: int | None


class LetterTopicRow(Struct, frozen=True):
    """A dead letter topic; `records` counts offsets, including letters already redriven."""

    topic: str
    partitions: int
    records: int


class Waiting(Struct, frozen=True):
    """All delay and retry topics, and all dead letter topics."""

    delays: list[DelayTopic]
    letters: list[LetterTopicRow]


class WaitingRecord(Struct, frozen=True):
    """A pending record; `due_ms` 0: due at once."""

    partition: int
    offset: int
    due_ms: int
    attempt: int | None
    schedule: str | None
    error: str | None
    size_bytes: int


class WaitingRecords(Struct, frozen=True):
    """The pending records of a delay or retry topic, earliest due first."""

    topic: str
    to: str
    pending: int
    due: dict[str, int]
    records: list[WaitingRecord]


class LetterRow(Struct, frozen=True):
    """A dead letter that was neither redriven nor purged. Fields are null if its headers do
    not have them.
    """

    partition: int
    offset: int
    timestamp_ms: int
    error: str | None = None
    source: str | None = None
    attempt: int | None = None
    origin_topic: str | None = None
    origin_partition: int | None = None
    origin_offset: int | None = None


class Letters(Struct, frozen=True):
    """The dead letters of a topic, and their total number."""

    topic: str
    dead: int
    letters: list[LetterRow]


async def waiting(watch: ClusterWatch, _: ClusterLook, __: Params) -> Waiting:
    client, now_ms = watch.client, watch.now_ms()
    routes = await find_routes(client)
    delays = []
    for name in sorted(routes):
        route = routes[name]
        found = (await find_pending(client, route, EVERYTHING, now_ms)).found
        kind = "delay" if isinstance(route, DelayRoute) else "retry"
        next_ms = found[0].due_ms if found else None
        counts = due_counts(found, now_ms)
        delays.append(
            DelayTopic(name, kind, route.to, route.dead_letters, len(found), counts, next_ms)
        )
    letters = []
    for name in await find_letter_topics(client, routes):
        opened = await open_letters(client, name)
        letters.append(LetterTopicRow(name, len(opened.keys), opened.size))
    return Waiting(delays, letters)


async def waiting_records(
    watch: ClusterWatch, _: ClusterLook, given: Params
) -> WaitingRecords | None:
    route = (await find_routes(watch.client)).get(given["topic"])
    if route is None:
        return None
    now_ms = watch.now_ms()
    found = (await find_pending(watch.client, route, EVERYTHING, now_ms)).found
    rows = [
        WaitingRecord(
            each.partition.partition,
            each.offset,
            each.due_ms,
            each.attempt,
            each.schedule,
            shown_error(watch, route.topic, each.error),
            each.size_bytes,
        )
        for each in found[:SHOWN]
    ]
    return WaitingRecords(route.topic, route.to, len(found), due_counts(found, now_ms), rows)


async def letters(watch: ClusterWatch, look: ClusterLook, given: Params) -> Letters | None:
    name = given["topic"]
    if all(each.name != name for each in look.snapshot.topics):
        return None
    opened = await open_letters(watch.client, name)
    rows, dead = list[LetterRow](), 0
    async for each in read_letters(watch.client, opened, EVERYTHING):
        dead += 1
        if len(rows) < SHOWN:
            row = letter_row(each)
            rows.append(replace(row, error=shown_error(watch, name, row.error)))
    return Letters(name, dead, rows)


def letter_row(letter: Letter) -> LetterRow:
    at = (letter.partition.partition, letter.record.offset, letter.record.timestamp)
    why = letter.dead
    if why is None:
        return LetterRow(*at)
    return LetterRow(*at, why.error, why.source, why.attempt, why.topic, why.partition, why.offset)


def shown_error(watch: ClusterWatch, topic: str, error: str | None) -> str | None:
    is_hidden = error is not None and watch.masks.of(topic).hides_header(ERROR_HEADERS)
    return MASKED if is_hidden else error


async def has_waiting(watch: ClusterWatch, look: ClusterLook) -> bool:
    """Whether the cluster has delay, retry or dead letter topics."""
    if any(is_named_for_letters(each.name) for each in look.snapshot.topics):
        return True
    return bool(await find_routes(watch.client))
