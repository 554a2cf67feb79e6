"""HBase in memory, with the happybase calls that the store makes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.retry.store.hbase import KIND, HBaseIndex

Columns = dict[bytes, bytes]


class Table:
    """Rows in order; also the connection and its Thrift client.

    A server that stalls applies a change later, and the caller does not wait for it.
    """

    def __init__(self) -> None:
        self.found: dict[bytes, Columns] = {}
        self.stalls: Callable[[str], bool] = lambda _: False
        """Whether the change with this name is applied late."""
        self.late: list[Callable[[], object]] = []
        self.client = self

    def _change(self, name: str, work: Callable[[], Any]) -> Any:
        if self.stalls(name):
            self.late.append(work)
            raise TimeoutError(f"{name} timed out")
        return work()

    def catch_up(self) -> None:
        late, self.late = self.late, []
        for each in late:
            each()

    def table(self, _: str) -> "Table":
        return self

    def close(self) -> None:
        """There is nothing to close."""

    def checkAndPut(  # noqa: N802  Thrift's name
        self, _: bytes, row: bytes, column: bytes, old: bytes, mutation: Any, __: object
    ) -> bool:
        def work() -> bool:
            is_old = self.found.get(row, {}).get(column) == old
            if is_old:
                self.found.setdefault(row, {})[column] = mutation.value
            return is_old

        return bool(self._change("checkAndPut", work))

    def put(self, row: bytes, columns: Columns) -> None:
        self._change("put", lambda: self.found.setdefault(row, {}).update(columns))

    @contextmanager
    def batch(self, batch_size: int) -> Iterator["Batch"]:
        made = Batch()
        yield made
        rest = list(made.changes)
        while rest:
            some, rest = rest[:batch_size], rest[batch_size:]

            def work(some: list[tuple[bytes, Columns | None]] = some) -> None:
                for row, columns in some:
                    if columns is None:
                        self.found.pop(row, None)
                    else:
                        self.found.setdefault(row, {}).update(columns)

            self._change("batch", work)

    def row(self, row: bytes, _: object) -> Columns:
        return dict(self.found.get(row, {}))

    def rows(self, rows: list[bytes], _: object) -> list[tuple[bytes, Columns]]:
        return [(each, dict(self.found[each])) for each in rows if each in self.found]

    def scan(
        self,
        row_start: bytes = b"",
        row_stop: bytes = b"\xff",
        row_prefix: bytes = b"",
        limit: int | None = None,
        **rest: Any,
    ) -> list[tuple[bytes, Columns]]:
        kinds = {each[0].encode() for each in (rest.get("filter") or "").split("binary:")[1:]}
        rows = [
            (row, dict(columns))
            for row, columns in sorted(self.found.items())
            if row_start <= row < row_stop and row.startswith(row_prefix)
            if not kinds or columns[KIND] in kinds
        ]
        return rows[:limit]


class Batch:
    """Changes in order."""

    def __init__(self) -> None:
        self.changes: list[tuple[bytes, Columns | None]] = []

    def put(self, row: bytes, columns: Columns) -> None:
        self.changes.append((row, columns))

    def delete(self, row: bytes) -> None:
        self.changes.append((row, None))


class MemoryHBase(HBaseIndex):
    """A client of such a server; several clients may share one."""

    def __init__(self, table: Table) -> None:
        super().__init__("hbase://memory")
        self._memory = table

    def _connected(self) -> Any:
        self._connection = self._memory
        return self._memory
