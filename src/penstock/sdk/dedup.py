"""Duplicates: those that a producer wrote twice, and those that a consumer reads twice.

A retry inside an idempotent producer is removed by the broker. A program that starts anew and sends
again what it had sent is not: only an id that the author chose tells. A record that comes twice
because its offset was not committed has the same id *and* the same offset.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Protocol

from penstock.sdk.record import Record


class Seen(Enum):
    """What an id says about a record."""

    FIRST = "first"
    CONSUMED_AGAIN = "consumed again"
    """The same record: it was read before, and not committed."""
    PRODUCED_AGAIN = "produced again"
    """Another record with the same id: its author sent it twice."""


class SeenIds(Protocol):
    """Keeps which record had an id first."""

    def add(self, identity: bytes, record: str, /) -> str | None:
        """Keep the id; returns the record that had it before, or None."""


class RecentIds:
    """In memory, the last `most` ids. They do not outlive the process."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._records: OrderedDict[bytes, str] = OrderedDict()

    def add(self, identity: bytes, record: str, /) -> str | None:
        before = self._records.get(identity)
        self._records[identity] = before or record
        self._records.move_to_end(identity)
        if len(self._records) > self._most:
            self._records.popitem(last=False)
        return before


class SqliteIds:
    """In a table `seen_ids` of the caller's database.

    Inside the caller's own transaction, an id and what was made of its record are one.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.execute("create table if not exists seen_ids (id blob primary key, record text)")

    def add(self, identity: bytes, record: str, /) -> str | None:
        found = self._database.execute("select record from seen_ids where id = ?", (identity,))
        if row := found.fetchone():
            return str(row[0])
        self._database.execute("insert into seen_ids values (?, ?)", (identity, record))
        return None


class Dedup:
    """Tells duplicates by an id: by default the header `id`. A record without one is FIRST."""

    def __init__(
        self,
        ids: SeenIds | None = None,
        *,
        id_of: Callable[[Record[Any, Any]], bytes | None] = lambda record: record.header("id"),
    ) -> None:
        self._ids, self._id_of = RecentIds() if ids is None else ids, id_of

    def check(self, record: Record[Any, Any]) -> Seen:
        identity = self._id_of(record)
        if identity is None:
            return Seen.FIRST
        own = f"{record.topic}-{record.partition}@{record.offset}"
        before = self._ids.add(identity, own)
        if before is None:
            return Seen.FIRST
        return Seen.CONSUMED_AGAIN if before == own else Seen.PRODUCED_AGAIN

    def unique(self, records: Iterable[Record[Any, Any]]) -> list[Record[Any, Any]]:
        """Those that are seen for the first time."""
        return [each for each in records if self.check(each) is Seen.FIRST]
