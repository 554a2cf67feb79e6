"""The contract of every time index: one suite for files and servers."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.retry.store.index import PAGE, DueKind, DueTimeIndex, Entry, IndexKey, StoreChanged
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, Uuid

KEY = IndexKey(Uuid(bytes(range(16))), 0)
SIBLING = IndexKey(Uuid(bytes(range(16))), 1)
BIG = 10**15
"""The latest possible due time."""


async def check_time_index(index: DueTimeIndex) -> None:
    for check in CHECKS:
        for key in (KEY, SIBLING):
            await index.reset(key, Offset(0))
        await check(index)


async def _unknown(index: DueTimeIndex) -> None:
    other = IndexKey(Uuid(bytes(16)), 7)
    assert await index.indexed_to(other) is None
    assert await index.due(other, BIG, 10) == []
    assert await index.next_due_ms(other) is None
    assert await index.schedules(other) == []
    assert [each async for page in index.pages(other) for each in page] == []
    with pytest.raises(StoreChanged):
        await index.put(other, [], since=Offset(0), to=Offset(1))
    assert await index.indexed_to(other) is None


async def _order(index: DueTimeIndex) -> None:
    """Entries come ordered by due time, then by offset, at most as many as requested."""
    entries = [Entry(BIG, 0), Entry(5, 12), Entry(5, 3), Entry(5, 100), Entry(0, 200), Entry(7, 1)]
    await index.put(KEY, entries, since=Offset(0), to=Offset(201))
    await index.put(SIBLING, [Entry(1, 1)], since=Offset(0), to=Offset(2))
    due = sorted(entries)
    assert await index.due(KEY, BIG, 10) == due
    assert await index.due(KEY, BIG - 1, 10) == due[:-1]
    assert await index.due(KEY, 5, 3) == due[:3]
    assert await index.next_due_ms(KEY) == 0
    await index.remove(KEY, [200, 3, 12])
    assert await index.due(KEY, 7, 10) == [Entry(5, 100), Entry(7, 1)]
    assert await index.next_due_ms(KEY) == 5
    assert await index.indexed_to(KEY) == 201
    assert (await index.waits(KEY, 100), await index.waits(KEY, 3)) == (True, False)
    assert await index.due(SIBLING, BIG, 10) == [Entry(1, 1)]


async def _kinds(index: DueTimeIndex) -> None:
    """Every field of an entry is returned, whatever its bytes."""
    entries = [
        Entry(1, 0, DueKind.SCHEDULE, bytes(range(256)) * 300, 0),
        Entry(2, 1, DueKind.CANCELLED),
        Entry(3, 2, DueKind.SPENT, "clé".encode(), 2),
        Entry(4, 3, DueKind.CANCEL, origin=1),
        Entry(5, 4, DueKind.RECORD),
    ]
    await index.put(KEY, entries, since=Offset(0), to=Offset(5))
    assert await index.due(KEY, 9, 9) == entries
    assert sorted(await index.schedules(KEY)) == [entries[0], entries[2]]
    assert await index.waits(KEY, 0)
    await index.remove(KEY, [0, 2, 77])
    assert await index.schedules(KEY) == []
    assert await index.due(KEY, 9, 9) == [entries[1], entries[3], entries[4]]


async def _replace(index: DueTimeIndex) -> None:
    """Entries of earlier offsets are replaced, even by another kind or with the same due time."""
    first = [Entry(50, 0, DueKind.SCHEDULE, b"k", 0), Entry(60, 1), Entry(70, 2)]
    await index.put(KEY, first, since=Offset(0), to=Offset(3))
    again = [Entry(0, 0, DueKind.CANCELLED), Entry(60, 1, DueKind.CANCELLED), Entry(80, 3)]
    await index.put(KEY, again, since=Offset(3), to=Offset(4))
    assert await index.due(KEY, 99, 9) == sorted([*again, first[2]])
    assert await index.schedules(KEY) == []
    later = Entry(90, 2)
    await index.put(KEY, [later], since=Offset(4), to=Offset(4))
    assert await index.due(KEY, 99, 9) == sorted([*again, later])
    assert [each async for page in index.pages(KEY) for each in page] != []
    assert sorted([each async for page in index.pages(KEY) for each in page]) == [0, 1, 2, 3]


async def _lost(index: DueTimeIndex) -> None:
    """A writer whose known state differs from the store's changes nothing."""
    await index.put(KEY, [Entry(5, 1)], since=Offset(0), to=Offset(2))
    for since in (0, 1, 3):
        with pytest.raises(StoreChanged):
            await index.put(KEY, [Entry(1, 3)], since=Offset(since), to=Offset(4))
    assert await index.indexed_to(KEY) == 2
    assert await index.due(KEY, 9, 9) == [Entry(5, 1)]
    await index.reset(KEY, Offset(9))
    assert (await index.indexed_to(KEY), await index.due(KEY, 9, 9)) == (9, [])


async def _many(index: DueTimeIndex) -> None:
    """More entries than a page are written and removed at once."""
    count = 2 * PAGE + 10
    entries = [Entry(1000 + each % 7, each) for each in range(count)]
    await index.put(KEY, entries, since=Offset(0), to=Offset(count))
    found = [each async for page in index.pages(KEY) for each in page]
    assert sorted(found) == list(range(count))
    assert await index.due(KEY, 2000, 100) == sorted(entries)[:100]
    await index.remove(KEY, range(1, count))
    assert await index.due(KEY, 2000, 100) == [Entry(1000, 0)]
    await index.remove(KEY, [])


CHECKS: tuple[Callable[[DueTimeIndex], Awaitable[None]], ...] = (
    _unknown,
    _order,
    _kinds,
    _replace,
    _lost,
    _many,
)


def overwritten(index: SqliteIndex, file: Path) -> None:
    """Damages the file while it is in use, after its header page."""
    index._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index._db.execute("PRAGMA cache_size=1")
    index._db.execute("PRAGMA shrink_memory")
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xa5" * (size - 4096))
