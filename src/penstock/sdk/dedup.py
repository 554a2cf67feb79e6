"""Detects duplicates: records that a producer wrote twice, and records that a consumer reads twice.

The broker removes retries of an idempotent producer. It does not notice a program that restarts and
sends the same records again: only an id chosen by the author shows that. A record that is read
twice because its offset was not committed has the same id *and* the same offset.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Protocol

from penstock.sdk.record import Record


class Seen(Enum):
    """What the id of a record shows about it."""

    FIRST = "first"
    CONSUMED_AGAIN = "consumed again"
    """The same record: it was read before, but not committed."""
    PRODUCED_AGAIN = "produced again"
    """Another record with the same id: its author sent it twice."""


class SeenIds(Protocol):
    """Stores which record had an id first."""

    def add(self, identity: bytes, record: str, /) -> str | None:
        """Store the id; returns the record that had it before, or None."""


class RecentIds:
    """The last `most` ids, in memory: they are lost when the process ends."""

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
    """Ids in a table `seen_ids` of the caller's database.

    In the caller's own transaction, an id and the effects of its record are stored together or not
    at all.
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
    """Recognizes duplicates by an id, by default the header `id`. A record without one is FIRST."""

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
        """The records that are seen for the first time."""
        return [each for each in records if self.check(each) is Seen.FIRST]
