"""HBase changes one row at a time, and its Thrift server may apply a change after the client gave
up.
"""

import asyncio
from collections.abc import Callable

import pytest

from penstock.retry.store.index import DueStoreUnavailable, Entry, StoreChanged
from penstock.types import Offset
from support.retry.hbase import MemoryHBase, Table
from support.retry.time_index import BIG, KEY, check_time_index

WAITS = [Entry(1000 + each % 3, each) for each in range(10)]


def nth(name: str, number: int) -> Callable[[str], bool]:
    """Whether a change stalls: number `number` of this name, from 0 on, and all after it."""
    seen: list[str] = []

    def stalls(each: str) -> bool:
        seen.append(each)
        return seen.count(name) > number

    return stalls


def test_the_index_fulfils_the_contract() -> None:
    asyncio.run(check_time_index(MemoryHBase(Table())))


@pytest.mark.parametrize(
    ("first", "stalled"),
    [
        ("put", ("checkAndPut", 0)),
        ("put", ("batch", 0)),
        ("put", ("checkAndPut", 1)),
        ("reset", ("put", 0)),
        ("reset", ("batch", 0)),
        ("reset", ("checkAndPut", 0)),
        ("remove", ("batch", 0)),
        ("remove", ("batch", 1)),
    ],
)
def test_a_late_change_loses_nothing(first: str, stalled: tuple[str, int]) -> None:
    """The service has restarted and has rebuilt what the store seemed to have lost."""

    async def scenario() -> None:
        table = Table()
        index = MemoryHBase(table)
        await index.reset(KEY, Offset(0))
        await index.put(KEY, WAITS, since=Offset(0), to=Offset(10))
        table.stalls = nth(*stalled)
        works = {
            "put": lambda: index.put(KEY, [Entry(5, 10)], since=Offset(10), to=Offset(11)),
            "reset": lambda: index.reset(KEY, Offset(10)),
            "remove": lambda: index.remove(KEY, [0, 1]),
        }
        with pytest.raises(DueStoreUnavailable):
            await works[first]()
        table.stalls = lambda _: False
        again = MemoryHBase(table)
        if await again.indexed_to(KEY) is None:
            await again.reset(KEY, Offset(0))
        since = await again.indexed_to(KEY)
        assert since is not None
        await again.put(KEY, WAITS[since:], since=since, to=Offset(max(since, 10)))
        table.catch_up()
        # The current index is complete, or known to be incomplete.
        last = MemoryHBase(table)
        gone = {0, 1} if first == "remove" else set()
        if (to := await last.indexed_to(KEY)) is not None:
            wanted = [each for each in WAITS if each.offset not in gone]
            wanted += [Entry(5, 10)] if to > 10 else []
            assert await last.due(KEY, BIG, 99) == sorted(wanted)

    asyncio.run(scenario())


def test_a_service_that_lost_its_partition_deletes_nothing_of_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.retry.store.hbase.PAGE", 4)

    async def scenario() -> None:
        table = Table()
        former, index = MemoryHBase(table), MemoryHBase(table)
        await former.reset(KEY, Offset(0))
        await former.put(KEY, WAITS, since=Offset(0), to=Offset(10))
        table.stalls = nth("batch", 1)  # it has deleted some entries, and continues later
        with pytest.raises(DueStoreUnavailable):
            await former.reset(KEY, Offset(0))
        table.stalls = lambda _: False
        await index.reset(KEY, Offset(0))
        await index.put(KEY, WAITS, since=Offset(0), to=Offset(10))
        table.catch_up()
        assert await index.due(KEY, BIG, 99) == sorted(WAITS)
        with pytest.raises(StoreChanged):
            await former.put(KEY, [Entry(1, 11)], since=Offset(10), to=Offset(12))
        assert await index.indexed_to(KEY) == 10

    asyncio.run(scenario())


def test_an_unfinished_removal_is_found_by_its_offset() -> None:
    """An entry left only under its due time could not be removed, and would be due for ever."""

    async def scenario() -> None:
        table = Table()
        index = MemoryHBase(table)
        await index.reset(KEY, Offset(0))
        await index.put(KEY, WAITS, since=Offset(0), to=Offset(10))
        table.stalls = nth("batch", 1)
        with pytest.raises(DueStoreUnavailable):
            await index.remove(KEY, [3, 4])
        table.stalls, table.late = (lambda _: False), []
        found = [each async for page in index.pages(KEY) for each in page]
        await index.remove(KEY, [each for each in found if each in (3, 4)])
        rest = [each for each in WAITS if each.offset not in (3, 4)]
        assert await index.due(KEY, BIG, 99) == sorted(rest)
        assert sorted([each async for page in index.pages(KEY) for each in page]) == [
            each.offset for each in rest
        ]

    asyncio.run(scenario())


def test_an_index_in_the_old_format_is_rebuilt() -> None:
    async def scenario() -> None:
        table = Table()
        index = MemoryHBase(table)
        prefix = b"%s/%08d/" % (KEY.topic_id.hex().encode(), KEY.partition)
        table.found = {
            prefix + b"u": {b"e:u": b"10"},
            prefix + b"o%016x" % 3: {b"e:d": b"5"},
            prefix + b"d%016x%016x" % (5, 3): {b"e:k": b"0", b"e:r": b"", b"e:o": b"-1"},
        }
        assert await index.indexed_to(KEY) is None
        await index.reset(KEY, Offset(0))
        assert (await index.indexed_to(KEY), len(table.found)) == (0, 1)

    asyncio.run(scenario())
