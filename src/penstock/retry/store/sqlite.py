"""The time index in a file: the default, without a server."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from penstock.errors import ConfigError
from penstock.retry.store.index import Entry, IndexKey, Kind, StoreUnavailable
from penstock.types import Offset

VERSION: Final = 1
LOCKED_S: Final = 5.0
"""For so long a service that ends may still have the file."""
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS indexed (
  topic BLOB, part INTEGER, until INTEGER NOT NULL, PRIMARY KEY (topic, part)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entry (
  topic BLOB, part INTEGER, at INTEGER, due INTEGER NOT NULL, kind INTEGER NOT NULL,
  key BLOB NOT NULL, origin INTEGER NOT NULL, PRIMARY KEY (topic, part, at)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_due ON entry (topic, part, due, at);
"""
ENTRIES: Final = "SELECT due, at, kind, key, origin FROM entry WHERE topic=? AND part=?"


class SqliteIndex:
    """See `TimeIndex`."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=LOCKED_S)
            # Two services would replace each other's entries: the second one must not start.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise ConfigError(f"{path} is of version {version}: a newer Penstock wrote it")
            # It can be built again from the log, so a power cut may cost the latest entries; a
            # write-ahead log still keeps each put whole.
            self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
            self._db.executescript(SCHEMA)
            self._db.execute(f"PRAGMA user_version={VERSION}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise ConfigError(f"the store {path} cannot be opened: {error}") from None
            raise ConfigError(f"the store {path} is used by another delay service") from None
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"the store {path} cannot be opened: {error}; it is a cache: you may delete it"
            ) from None

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        with self._errors():
            found = self._db.execute(
                "SELECT until FROM indexed WHERE topic=? AND part=?", key
            ).fetchone()
        return None if found is None else Offset(found[0])

    async def put(self, key: IndexKey, entries: Sequence[Entry], indexed_to: Offset) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO entry VALUES (?,?,?,?,?,?,?)",
                [(*key, e.offset, e.due_ms, int(e.kind), e.key, e.origin) for e in entries],
            )
            self._db.execute("INSERT OR REPLACE INTO indexed VALUES (?,?,?)", (*key, indexed_to))

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        with self._errors():
            return self._entries("AND due<=? ORDER BY due, at LIMIT ?", (*key, now_ms, limit))

    async def next_due_ms(self, key: IndexKey) -> int | None:
        with self._errors():
            found = self._db.execute(
                "SELECT due FROM entry WHERE topic=? AND part=? ORDER BY due LIMIT 1", key
            ).fetchone()
        return None if found is None else int(found[0])

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None:
        with self._transaction():
            self._db.executemany(
                "DELETE FROM entry WHERE topic=? AND part=? AND at=?",
                [(*key, each) for each in offsets],
            )

    async def counts(self, key: IndexKey, chunk: int) -> Mapping[int, int]:
        with self._errors():
            return dict(
                self._db.execute(
                    "SELECT at/?, count(*) FROM entry WHERE topic=? AND part=? GROUP BY 1",
                    (chunk, *key),
                )
            )

    async def offsets(self, key: IndexKey, low: int, high: int) -> list[int]:
        with self._errors():
            rows = self._db.execute(
                "SELECT at FROM entry WHERE topic=? AND part=? AND at>=? AND at<?",
                (*key, low, high),
            )
            return [at for (at,) in rows]

    async def schedules(self, key: IndexKey) -> list[Entry]:
        with self._errors():
            return self._entries("AND kind IN (?,?)", (*key, Kind.SCHEDULE, Kind.SPENT))

    async def clear(self, key: IndexKey) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM entry WHERE topic=? AND part=?", key)
            self._db.execute("DELETE FROM indexed WHERE topic=? AND part=?", key)

    async def close(self) -> None:
        self._db.close()

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        rows = self._db.execute(f"{ENTRIES} {condition}", values)
        return [Entry(due, at, Kind(kind), key, origin) for due, at, kind, key, origin in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the SQLite store failed: {error}") from None
