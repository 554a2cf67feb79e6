"""The time index in MariaDB, MySQL or PostgreSQL, by SQLAlchemy."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

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
from penstock.retry.store.worker import StoreWorker
from penstock.types import Offset

T = TypeVar("T")

DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""The drivers that penstock[retry] installs."""
CONNECT_S: Final = 5
ANSWER_S: Final = 10
ARGUMENTS: Final = {
    "pymysql": {"connect_timeout": CONNECT_S, "read_timeout": ANSWER_S, "write_timeout": ANSWER_S},
    "psycopg": {
        "connect_timeout": CONNECT_S,
        "tcp_user_timeout": ANSWER_S * 1000,
        "options": f"-c statement_timeout={ANSWER_S}s",
    },
}

TABLES: Final = sa.MetaData()
BYTES: Final = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
INDEXED: Final = sa.Table(
    "penstock_delay_indexed",
    TABLES,
    sa.Column("topic", sa.String(32), primary_key=True),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("until", sa.BigInteger, nullable=False),
)
ENTRY: Final = sa.Table(
    "penstock_delay_entry",
    TABLES,
    sa.Column("topic", sa.String(32), primary_key=True),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("due", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.SmallInteger, nullable=False),
    sa.Column("record_key", BYTES, nullable=False),
    sa.Column("origin", sa.BigInteger, nullable=False),
    sa.Index("penstock_delay_due", "topic", "part", "due", "at"),
)


class SqlIndex:
    """Implements `TimeIndex`. Creates its tables when they are missing."""

    def __init__(self, url: str) -> None:
        """Does not connect yet."""
        scheme, colon, rest = url.partition("://")
        try:
            made = sa.make_url(DRIVERS.get(scheme, scheme) + colon + rest)
            self._engine = sa.create_engine(
                made,
                pool_size=1,
                max_overflow=0,
                connect_args=ARGUMENTS.get(made.get_driver_name(), {}),
                hide_parameters=True,
            )
        except (ArgumentError, NoSuchModuleError, ValueError):
            raise ConfigError(
                f"{scheme}://… names no store: write postgresql://USER:PASSWORD@HOST/DATABASE, "
                "mysql://… or mariadb://…"
            ) from None
        self._name = scheme.partition("+")[0]
        self._worker = StoreWorker(self._name)
        self._has_tables = False

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        query = sa.select(INDEXED.c.until).where(*_of(INDEXED, key))
        found = await self._run(lambda db: db.execute(query).scalar())
        return None if found is None else Offset(found)

    async def reset(self, key: IndexKey, to: Offset) -> None:
        def work(db: sa.Connection) -> None:
            for table in (ENTRY, INDEXED):
                db.execute(sa.delete(table).where(*_of(table, key)))
            db.execute(sa.insert(INDEXED).values(topic=key.topic_id.hex(), part=key[1], until=to))

        await self._run(work)

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        topic, part = key.topic_id.hex(), key.partition
        rows = [
            {
                "topic": topic,
                "part": part,
                "at": each.offset,
                "due": each.due_ms,
                "kind": int(each.kind),
                "record_key": each.key,
                "origin": each.origin,
            }
            for each in entries
        ]

        def work(db: sa.Connection) -> None:
            was = (*_of(INDEXED, key), INDEXED.c.until == since)
            if db.execute(sa.update(INDEXED).where(*was).values(until=to)).rowcount != 1:
                raise StoreChanged(f"the {self._name} store was changed by another program")
            _delete(db, key, [each.offset for each in entries if each.offset < since])
            if rows:
                db.execute(sa.insert(ENTRY), rows)

        await self._run(work)

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        is_due = (*_of(ENTRY, key), ENTRY.c.due <= now_ms)
        return await self._entries(
            _SELECTED.where(*is_due).order_by(ENTRY.c.due, ENTRY.c.at).limit(limit)
        )

    async def next_due_ms(self, key: IndexKey) -> int | None:
        query = sa.select(sa.func.min(ENTRY.c.due)).where(*_of(ENTRY, key))
        found = await self._run(lambda db: db.execute(query).scalar())
        return None if found is None else int(found)

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None:
        gone = list(offsets)
        if gone:
            await self._run(lambda db: _delete(db, key, gone))

    async def waits(self, key: IndexKey, offset: int) -> bool:
        query = sa.select(ENTRY.c.at).where(*_of(ENTRY, key), ENTRY.c.at == offset)
        return await self._run(lambda db: db.execute(query).first()) is not None

    async def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        page: Sequence[int] = [-1]
        while page:
            after = (*_of(ENTRY, key), ENTRY.c.at > page[-1])
            query = sa.select(ENTRY.c.at).where(*after).order_by(ENTRY.c.at).limit(PAGE)
            page = await self._run(partial(_column, query))
            yield page

    async def schedules(self, key: IndexKey) -> list[Entry]:
        kinds = ENTRY.c.kind.in_([int(DueKind.SCHEDULE), int(DueKind.SPENT)])
        return await self._entries(_SELECTED.where(*_of(ENTRY, key), kinds))

    async def close(self) -> None:
        self._worker.close()
        self._engine.dispose()

    async def _entries(self, query: sa.Select[Any]) -> list[Entry]:
        rows = await self._run(lambda db: db.execute(query).all())
        return [
            Entry(due, at, KINDS[kind], bytes(key), origin) for due, at, kind, key, origin in rows
        ]

    async def _run(self, work: Callable[[sa.Connection], T]) -> T:
        def transaction() -> T:
            with self._errors():
                if not self._has_tables:
                    TABLES.create_all(self._engine)
                    self._has_tables = True
                with self._engine.begin() as db:
                    return work(db)

        return await self._worker.run(transaction)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            self._has_tables = False  # they may have been dropped
            cause = error.orig if isinstance(error, DBAPIError) else error
            reason = str(cause).strip().partition("\n")[0]
            raise DueStoreUnavailable(f"the {self._name} store failed: {reason}") from None


_SELECTED: Final = sa.select(
    ENTRY.c.due, ENTRY.c.at, ENTRY.c.kind, ENTRY.c.record_key, ENTRY.c.origin
)


def _column(query: sa.Select[Any], db: sa.Connection) -> Sequence[int]:
    return db.execute(query).scalars().all()


def _of(table: sa.Table, key: IndexKey) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.topic == key.topic_id.hex(), table.c.part == key.partition


def _delete(db: sa.Connection, key: IndexKey, offsets: Sequence[int]) -> None:
    for first in range(0, len(offsets), PAGE):
        gone = ENTRY.c.at.in_(offsets[first : first + PAGE])
        db.execute(sa.delete(ENTRY).where(*_of(ENTRY, key), gone))
