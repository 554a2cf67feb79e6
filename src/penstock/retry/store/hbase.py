"""The time index in HBase, through its Thrift server (`hbase thrift start`).

The rows of a partition share a prefix and are sorted: by due time (d), by offset (o), and one row
(u) with the offset up to which it is indexed. HBase changes one row at a time, so row (u) is marked
while others change; a service that finds the mark reads the log again.

The Thrift server continues a request for minutes after its client has given up. So each rebuild of
a partition uses rows of a new generation, which row (u) names: late changes go to rows that do not
count.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import happybase
from happybase.batch import Mutation
from thriftpy2.thrift import TException

from penstock.errors import ConfigError
from penstock.retry.store.index import (
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

PORT: Final = 9090
TABLE: Final = "penstock_delay"
ANSWER_MS: Final = 10_000
FAMILY: Final = "e"
KIND, KEY, ORIGIN, DUE, UNTIL = b"e:k", b"e:r", b"e:o", b"e:d", b"e:u"
CHANGING: Final = b"changing"
CHANGED: Final = "the HBase store lost entries, or another program writes it"
NO_GENERATION: Final = b"none"
OPTIONS: Final = {"transport": ("buffered", "framed"), "protocol": ("binary", "compact")}


def _prefix(key: IndexKey) -> bytes:
    return b"%s/%08d/" % (key.topic_id.hex().encode(), key.partition)


def _until(key: IndexKey) -> bytes:
    return _prefix(key) + b"u"


class _Rows(NamedTuple):
    """The rows of a partition's current generation."""

    key: IndexKey
    generation: bytes

    @property
    def changing(self) -> bytes:
        return CHANGING + b" " + self.generation

    def until(self, offset: int) -> bytes:
        return b"%d %s" % (offset, self.generation)

    @property
    def by_due(self) -> bytes:
        return _prefix(self.key) + b"d" + self.generation

    @property
    def by_offset(self) -> bytes:
        return _prefix(self.key) + b"o" + self.generation

    def due(self, due_ms: int, offset: int) -> bytes:
        return self.by_due + b"%016x%016x" % (due_ms, offset)

    def at(self, offset: int) -> bytes:
        return self.by_offset + b"%016x" % offset


class HBaseIndex:
    """Implements `TimeIndex`. `hbase://HOST:PORT/TABLE?transport=framed&protocol=compact`."""

    def __init__(self, url: str) -> None:
        """Does not connect yet."""
        self._server, self._name = _server(url)
        self._worker = StoreWorker("HBase")
        self._connection: Any = None
        self._rows: dict[IndexKey, _Rows] = {}

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        def work(table: Any) -> Offset | None:
            value = table.row(_until(key), [UNTIL]).get(UNTIL, b"")
            until, _, generation = value.partition(b" ")
            if until == CHANGING or not generation:
                return None
            self._rows[key] = _Rows(key, generation)
            return Offset(int(until))

        return await self._run(work)

    async def reset(self, key: IndexKey, to: Offset) -> None:
        rows = _Rows(key, b"%.8s" % uuid4().hex.encode())

        def work(table: Any) -> None:
            table.put(_until(key), {UNTIL: rows.changing})
            for kind in (b"d", b"o"):  # of all generations
                while found := _scanned(table, _prefix(key) + kind, PAGE, "KeyOnlyFilter()"):
                    # Stop if another service rebuilds it meanwhile.
                    if table.row(_until(key), [UNTIL]).get(UNTIL) != rows.changing:
                        raise StoreChanged(CHANGED)
                    with table.batch(batch_size=PAGE) as batch:
                        for row, _ in found:
                            batch.delete(row)
            self._replace(_until(key), rows.changing, rows.until(to))
            self._rows[key] = rows

        await self._run(work)

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        def work(table: Any) -> None:
            rows = self._known(key)
            self._replace(
                _until(key), rows.until(since), rows.changing if entries else rows.until(to)
            )
            if not entries:
                return
            earlier = [each.offset for each in entries if each.offset < since]
            known = _due_times(table, rows, earlier)
            with table.batch(batch_size=PAGE) as batch:
                for each in entries:
                    if known.get(each.offset, each.due_ms) != each.due_ms:
                        batch.delete(rows.due(known[each.offset], each.offset))
                    batch.put(rows.at(each.offset), {DUE: b"%d" % each.due_ms})
                    batch.put(rows.due(each.due_ms, each.offset), _columns(each))
            self._replace(_until(key), rows.changing, rows.until(to))

        await self._run(work)

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        def work(table: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
            rows = self._known(key)
            stop = rows.due(now_ms + 1, 0)
            return list(table.scan(row_start=rows.by_due, row_stop=stop, limit=limit))

        return [_entry(row, columns) for row, columns in await self._run(work)]

    async def next_due_ms(self, key: IndexKey) -> int | None:
        rows = await self._run(lambda table: _scanned(table, self._known(key).by_due, 1))
        return _entry(*rows[0]).due_ms if rows else None

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None:
        gone = list(offsets)

        def work(table: Any) -> None:
            rows = self._known(key)
            found = _due_times(table, rows, gone)
            # Rows by offset go last: if this is interrupted, they still lead to the others.
            for removed in (
                [rows.due(due_ms, offset) for offset, due_ms in found.items()],
                [rows.at(offset) for offset in found],
            ):
                with table.batch(batch_size=PAGE) as batch:
                    for each in removed:
                        batch.delete(each)

        await self._run(work)

    async def waits(self, key: IndexKey, offset: int) -> bool:
        return bool(await self._run(lambda table: table.row(self._known(key).at(offset), [DUE])))

    async def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        prefix, after, page = self._known(key).by_offset, b"", [0]
        while page:
            scan = partial(
                _scanned, prefix=prefix, limit=PAGE, chosen="KeyOnlyFilter()", after=after
            )
            rows = await self._run(scan)
            page = [int(row[len(prefix) :], 16) for row, _ in rows]
            after = rows[-1][0] + b"\0" if rows else b""
            yield page

    async def schedules(self, key: IndexKey) -> list[Entry]:
        wanted = " OR ".join(
            f"SingleColumnValueFilter('{FAMILY}','k',=,'binary:{kind}')"
            for kind in (int(DueKind.SCHEDULE), int(DueKind.SPENT))
        )
        prefix = self._known(key).by_due
        rows = await self._run(
            lambda table: list(table.scan(row_prefix=prefix, filter=wanted, batch_size=PAGE))
        )
        return [_entry(row, columns) for row, columns in rows]

    async def close(self) -> None:
        self._worker.close()
        if self._connection is not None:
            self._connection.close()

    async def _run(self, work: Callable[[Any], T]) -> T:
        def call() -> T:
            try:
                return work(self._connected())
            except (TException, OSError) as error:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                reason = str(error).strip().partition("\n")[0]
                raise DueStoreUnavailable(f"the HBase store failed: {reason}") from None

        return await self._worker.run(call)

    def _connected(self) -> Any:
        if self._connection is None:
            connection = happybase.Connection(**self._server, timeout=ANSWER_MS)
            if self._name.encode() not in connection.tables():
                connection.create_table(self._name, {FAMILY: {"max_versions": 1}})
            self._connection = connection
        return self._connection.table(self._name)

    def _known(self, key: IndexKey) -> _Rows:
        """The rows that were current when the partition was last looked up or rebuilt."""
        return self._rows.get(key) or _Rows(key, NO_GENERATION)

    def _replace(self, row: bytes, old: bytes, new: bytes) -> None:
        """Write the row's value only if it is still the old one."""
        mutation = Mutation(isDelete=False, column=UNTIL, value=new)
        if not self._connection.client.checkAndPut(
            self._name.encode(), row, UNTIL, old, mutation, {}
        ):
            raise StoreChanged(CHANGED)


def _server(url: str) -> tuple[dict[str, Any], str]:
    form = "the URL of the HBase store is not hbase://HOST:PORT/TABLE"
    try:
        parts = urlsplit(url)
        server: dict[str, Any] = {"host": parts.hostname or "", "port": parts.port or PORT}
    except ValueError:
        raise ConfigError(form) from None
    if not server["host"] or parts.username or parts.password:
        raise ConfigError(f"{form}; its Thrift server has no passwords")
    for name, (*_, value) in parse_qs(parts.query).items():
        if value not in OPTIONS.get(name, ()):
            raise ConfigError(f"{form}; {name}={value} is not known")
        server[name] = value
    return server, parts.path.strip("/") or TABLE


def _columns(entry: Entry) -> dict[bytes, bytes]:
    return {KIND: b"%d" % entry.kind, KEY: entry.key, ORIGIN: b"%d" % entry.origin}


def _entry(row: bytes, columns: dict[bytes, bytes]) -> Entry:
    return Entry(
        int(row[-32:-16], 16),
        int(row[-16:], 16),
        DueKind(int(columns[KIND])),
        columns[KEY],
        int(columns[ORIGIN]),
    )


def _scanned(
    table: Any, prefix: bytes, limit: int, chosen: str | None = None, after: bytes = b""
) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The first rows of a prefix, in order."""
    stop = prefix[:-1] + bytes([prefix[-1] + 1])
    rows = table.scan(
        row_start=after or prefix, row_stop=stop, limit=limit, filter=chosen, batch_size=limit
    )
    return list(rows)


def _due_times(table: Any, known: _Rows, offsets: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for first in range(0, len(offsets), PAGE):
        rows = [known.at(each) for each in offsets[first : first + PAGE]]
        for row, columns in table.rows(rows, [DUE]):
            found[int(row[-16:], 16)] = int(columns[DUE])
    return found
