"""The time index in a file: the default, without a server."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from penstock.errors import ConfigError
from penstock.retry.store.index import (
    KINDS,
    PAGE,
    DueKind,
    DueStoreUnavailable,
    Entry,
    IndexKey,
    StoreChanged,
)
from penstock.types import Offset

VERSION: Final = 1
LOCKED_S: Final = 5.0
"""How long a service that is ending may still hold the file."""
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
BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
ENTRIES: Final = "SELECT due, at, kind, key, origin FROM entry WHERE topic=? AND part=?"

log = logging.getLogger(__name__)


class SqliteIndex:
    """Implements `TimeIndex`. A corrupt file is put aside and rebuilt from the topics."""

    def __init__(self, path: Path, *, is_own: bool = False) -> None:
        """`is_own`: the file is in our own folder: replace it even if it is not a database."""
        self._path = path
        try:
            self._open()
        except sqlite3.Error as error:
            code = _code(error)
            if code == sqlite3.SQLITE_BUSY:
                raise ConfigError(f"the store {path} is used by another delay service") from None
            if code not in BROKEN or (code == sqlite3.SQLITE_NOTADB and not is_own):
                hint = "; it is a cache: you may delete it" if code in BROKEN else ""
                raise ConfigError(f"the store {path} cannot be opened: {error}{hint}") from None
            log.warning("the store %s is broken and is built again: %s", path, error)
            self._begin_anew()

    def _open(self) -> None:
        path = self._path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=LOCKED_S)
            # Two services would replace each other's entries, so the second must not start.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise ConfigError(
                    f"{path} was written by a newer version of penstock: it has version {version}, "
                    f"this one knows up to {VERSION}; it is a cache: you may delete it"
                )
            # It can be rebuilt from the log, so a power failure may cost the latest entries; the
            # write-ahead log still keeps each put atomic.
            self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
            self._db.executescript(SCHEMA)
            self._db.execute(f"PRAGMA user_version={VERSION}")
        except OSError as error:
            raise ConfigError(f"the store {path} cannot be opened: {error}") from None

    def _begin_anew(self) -> None:
        self._db.close()
        try:
            self._path.replace(f"{self._path}.broken")
            for ending in ("-wal", "-shm"):
                Path(f"{self._path}{ending}").unlink(missing_ok=True)
            self._open()
        except (sqlite3.Error, OSError) as error:
            raise DueStoreUnavailable(f"the SQLite store cannot be rebuilt: {error}") from None

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        with self._errors():
            found = self._db.execute(
                "SELECT until FROM indexed WHERE topic=? AND part=?", key
            ).fetchone()
        return None if found is None else Offset(found[0])

    async def reset(self, key: IndexKey, to: Offset) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM entry WHERE topic=? AND part=?", key)
            self._db.execute("INSERT OR REPLACE INTO indexed VALUES (?,?,?)", (*key, to))

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        with self._transaction():
            moved = self._db.execute(
                "UPDATE indexed SET until=? WHERE topic=? AND part=? AND until=?", (to, *key, since)
            )
            if moved.rowcount != 1:
                raise StoreChanged("the SQLite store was changed by another program")
            self._db.executemany(
                "INSERT OR REPLACE INTO entry VALUES (?,?,?,?,?,?,?)",
                [(*key, e.offset, e.due_ms, int(e.kind), e.key, e.origin) for e in entries],
            )

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

    async def waits(self, key: IndexKey, offset: int) -> bool:
        with self._errors():
            found = self._db.execute(
                "SELECT 1 FROM entry WHERE topic=? AND part=? AND at=?", (*key, offset)
            )
            return found.fetchone() is not None

    async def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        page = [-1]
        while page:
            with self._errors():
                found = self._db.execute(
                    "SELECT at FROM entry WHERE topic=? AND part=? AND at>? ORDER BY at LIMIT ?",
                    (*key, page[-1], PAGE),
                )
                page = [at for (at,) in found]
            yield page

    async def schedules(self, key: IndexKey) -> list[Entry]:
        with self._errors():
            return self._entries("AND kind IN (?,?)", (*key, DueKind.SCHEDULE, DueKind.SPENT))

    async def close(self) -> None:
        self._db.close()

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        rows = self._db.execute(f"{ENTRIES} {condition}", values)
        return [Entry(due, at, KINDS[kind], key, origin) for due, at, kind, key, origin in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _code(error) not in BROKEN:
                raise DueStoreUnavailable(f"the SQLite store failed: {error}") from None
            self._begin_anew()
            raise StoreChanged(f"the SQLite store is broken and is built again: {error}") from None


def _code(error: sqlite3.Error) -> int:
    """The primary error code, without the bits of an extended code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
