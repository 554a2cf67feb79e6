"""`penstock_table`: a database table as a stream of new rows, and as a sink that upserts."""

import datetime as dt
import decimal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType
from sqlalchemy.exc import SQLAlchemyError

from penstock.errors import ConfigError
from penstock.spark.client.security import SECURITY, read_security
from penstock.spark.connector import position_version
from penstock.spark.connector.rejected_row import RejectedRow, send
from penstock.spark.connector.table import (
    as_read,
    as_spark,
    as_stored,
    check_followed,
    check_unique,
    columns_ddl,
    compared,
    engine_of,
    is_compared_as_stored,
    is_of_row,
    kind_of,
    spellings,
    table_of,
    upsert,
)
from penstock.spark.options import SUPPORTED, Options, Use
from penstock.spark.sink.columns import check_distinct

OWN: Final = ("url", "table", "increasing", "key", "deadLetters", "bootstrap", "pipeline")
FROM_SPARK: Final = ("checkpointLocation", "path", "queryName", "outputMode")
"""Settings of a query that Spark passes on."""
KNOWN: Final[Mapping[str, Use]] = {
    **dict.fromkeys((*OWN, *FROM_SPARK), SUPPORTED),
    **{f"kafka.{name}": use for name, use in SECURITY.items()},
}
"""Options; the `kafka.` ones are for dead letters."""
ROWS_AT_ONCE: Final = 500
VERSION: Final = 1
"""Version of the JSON of positions."""
READ: Final = "read"
"""In a position: hashes of the rows read with its value; missing if values are unique."""
AS_STORED: Final = "as stored"
"""In a position: its value is as SQLite stores it; missing in older checkpoints."""
OF: Final = "of"
"""In a position: its table and column; missing in older checkpoints."""
MOST_ALIKE: Final = 100_000
"""The most rows with one value of `increasing`: a position lists them all."""


class TableSource(DataSource):
    """Options: url, table; `increasing`, the column that a stream follows; `key` of an upsert."""

    @classmethod
    def name(cls) -> str:
        return "penstock_table"

    def schema(self) -> str:
        options = self._checked()
        engine = engine_of(options.required("url"))
        return columns_ddl(table_of(engine, options.required("table")))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        options = self._checked()
        return TableReader(options.required("url"), options.required("table"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        options = self._checked()
        return TableFollower(
            options.required("url"), options.required("table"), options.required("increasing")
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        if overwrite:
            raise ConfigError(
                "a table cannot be overwritten: use mode append, which replaces rows by key"
            )
        return TableWriter(self._upsert(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, ARG002, N802
        return TableStreamWriter(self._upsert(schema))

    def _checked(self) -> Options:
        options = Options(self.options)
        options.warnings(KNOWN)
        return options

    def _upsert(self, schema: StructType) -> "Upsert":
        check_distinct(schema.names)
        options = self._checked()
        key = tuple(each.strip() for each in options.required("key").split(","))
        for each in key:
            if each not in schema.names:
                raise ConfigError(f"option key: the rows have no column {each}")
        made = Upsert(
            options.required("url"),
            options.required("table"),
            key,
            tuple(schema.names),
            options.optional("deadLetters"),
            self._connection(options),
            options.optional("pipeline"),
        )
        made.check()
        return made

    def _connection(self, options: Options) -> dict[str, str]:
        given = {f"kafka.{name}" for name in SECURITY if f"kafka.{name}" in options}
        found = {name: options.text(name) for name in given}
        if "deadLetters" in options:
            found["kafka.bootstrap.servers"] = options.required("bootstrap")
            read_security(Options(found))  # fails early, at the driver
        return found


@dataclass(frozen=True)
class TableReader(DataSourceReader):
    """The whole table, in one task."""

    url: str
    table: str

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
        engine = engine_of(self.url)
        table = table_of(engine, self.table)
        for _, row in _rows(engine, table, sa.select(*as_read(table))):
            yield row


class TableFollower(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows in the order of a column that only grows: a number, a time or a text.

    Rows may share a value: for the last value, the position lists the rows that were read. A row
    that becomes visible after one with a higher value was read is missed: the database's
    transactions must end in the order of that column, or before the table is read.
    """

    def __init__(self, url: str, table: str, increasing: str) -> None:
        self._url, self._table, self._increasing = url, table, increasing
        self._target: dict[str, Any] | None = None
        engine = engine_of(url)
        found = table_of(engine, table)
        if increasing not in found.columns:
            names = ", ".join(each.name for each in found.columns)
            raise ConfigError(f"option increasing: no column {increasing}; there are {names}")
        check_followed(engine, found.columns[increasing])

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"after": None}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._highest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        self._check_followed(start)
        found = self._target if self._target is not None else self._highest()
        return start if found["after"] is None else found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._check_followed(start)
        self._check_followed(end)
        return [InputPartition((start, end))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        start, end = partition.value
        engine = engine_of(self._url)
        table = table_of(engine, self._table)
        column = compared(engine, table.columns[self._increasing])
        _, until = _spellings(column, end)
        wanted = sa.select(*as_read(table)).where(column <= until).order_by(column)
        at_start: Any = sa.false()
        if start["after"] is not None:
            first, last = _spellings(column, start)
            at_start = _is_between(column, first, last)
            # A position of an older version lists no rows: all with its value count as read.
            wanted = wanted.where(column >= first if READ in start else column > last)
        # The database decides which values are equal: its collation may equate A and a.
        wanted = wanted.add_columns(at_start, _is_between(column, *_spellings(column, end)))
        before, planned = Counter(start.get(READ, ())), Counter(end.get(READ, ()))
        key = _key_of(table)
        for (*raw, is_first, is_last), row in _rows(engine, table, wanted):
            if is_first or is_last:
                name = _name_of(raw, key)
                if is_first and before[name]:
                    before[name] -= 1
                    planned[name] -= 1
                    continue
                # Rows are not listed any more once the column's values are unique.
                if READ in end and is_last and planned[name] <= 0:
                    continue  # it came after this batch was planned, and belongs to the next
                planned[name] -= 1
            yield row

    @property
    def _followed(self) -> list[str]:
        """Without the table's schema, which may be given or not."""
        return [self._table.rpartition(".")[2], self._increasing]

    def _check_followed(self, position: Mapping[str, Any]) -> None:
        """Values of another table or column mean nothing here: rows would be skipped, or read
        twice.
        """
        position_version.refuse_newer(position, VERSION)
        if position.get(OF, self._followed) != self._followed:
            table, column = position[OF]
            raise ConfigError(
                f"the checkpoint is of column {column} of table {table}, and the query follows "
                f"{self._increasing} of {self._table}; use another checkpoint"
            )

    def _highest(self) -> dict[str, Any]:
        """The highest value, and the rows that have it: more rows may come with the same value."""
        engine = engine_of(self._url)
        table = table_of(engine, self._table)
        column = compared(engine, table.columns[self._increasing])
        with engine.connect() as connection:
            highest = connection.execute(sa.select(sa.func.max(column))).scalar()
            if highest is None:
                return {"after": None}
            if isinstance(highest, float | Decimal) and highest != highest:  # noqa: PLR0124
                raise ConfigError(
                    f"option increasing: {self._increasing} is NaN in some rows of {self._table}, "
                    "which PostgreSQL takes for the highest number: no later row would be read"
                )
            found: dict[str, Any] = {
                position_version.KEY: VERSION,
                "after": msgspec.to_builtins(highest),
                OF: self._followed,
            }
            if column is not table.columns[self._increasing]:
                found[AS_STORED] = True
            if not _is_unique(engine, table, self._increasing):
                same = connection.execute(
                    sa.select(*as_read(table)).where(column == highest).limit(MOST_ALIKE + 1)
                ).all()
                if len(same) > MOST_ALIKE:
                    raise ConfigError(
                        f"option increasing: more than {MOST_ALIKE} rows of {self._table} have "
                        f"{self._increasing} = {highest}; follow a column whose values differ"
                    )
                found[READ] = sorted(_name_of(row, _key_of(table)) for row in same)
        return found


def _is_unique(engine: sa.Engine, table: sa.Table, column: str) -> bool:
    if [each.name for each in table.primary_key.columns] == [column]:
        return True
    inspector = sa.inspect(engine)
    unique = [
        each["column_names"] for each in inspector.get_unique_constraints(table.name, table.schema)
    ]
    return [column] in unique


def _key_of(table: sa.Table) -> list[int]:
    """Positions of the columns that identify a row: the primary key, else all."""
    names = table.columns.keys()
    return [names.index(each.name) for each in table.primary_key.columns] or [*range(len(names))]


def _name_of(row: Sequence[Any], key: Sequence[int]) -> str:
    text = msgspec.json.encode([row[each] for each in key], enc_hook=str)
    return sha256(text).hexdigest()[:16]


def _is_between(column: sa.ColumnElement[Any], first: Any, last: Any) -> sa.ColumnElement[bool]:
    """Not by BETWEEN: PostgreSQL accepts no collation in its bounds."""
    return sa.and_(column >= first, column <= last)


def _spellings(column: sa.ColumnElement[Any], position: Mapping[str, Any]) -> tuple[Any, Any]:
    """The first and last value of the column that a position may stand for; usually the same."""
    value = position["after"]
    if isinstance(value, str) and AS_STORED not in position and is_compared_as_stored(column):
        return spellings(column, value)
    return (_value(column, value),) * 2


def _value(column: sa.ColumnElement[Any], value: Any) -> Any:
    """A checkpoint's value, in the column's type."""
    kinds: dict[str, type] = {
        "timestamp": dt.datetime,
        "date": dt.date,
        "decimal": decimal.Decimal,
        "double": float,
        "binary": bytes,
    }
    kind = kinds.get(kind_of(column).partition("(")[0])
    return value if kind is None else msgspec.convert(value, kind, strict=False)


def _rows(
    engine: sa.Engine, table: sa.Table, wanted: Any
) -> Iterator[tuple[Sequence[Any], tuple[Any, ...]]]:
    """Rows as the database returns them, and their columns converted for Spark."""
    kinds = [as_spark(kind_of(each)) for each in table.columns]
    with engine.connect().execution_options(stream_results=True) as connection:
        for row in connection.execute(wanted):
            yield row, tuple(kind(value) for kind, value in zip(kinds, row, strict=False))


@dataclass
class Upserted(WriterCommitMessage):
    """How many rows a task wrote, and how many the database rejected."""

    rows: int
    rejected: int


@dataclass(frozen=True)
class Upsert:
    """Writes a task's rows. Writing them twice changes nothing, so a retry does no harm."""

    url: str
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    dead_letters: str | None = None
    connection: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options `kafka.*` for dead letters; they may hold secrets."""
    pipeline: str | None = None
    """The source that dead letters name; None: the table's name."""

    def check(self) -> None:
        engine = engine_of(self.url)
        found = table_of(engine, self.table)
        missing = [each for each in self.columns if each not in found.columns]
        if missing:
            raise ConfigError(f"table {self.table} has no column {', '.join(missing)}")
        check_unique(engine, found, self.key)

    def write(self, rows: Iterator[Row]) -> Upserted:
        engine = engine_of(self.url)
        table = table_of(engine, self.table)
        statement = upsert(engine, table, self.key, self.columns)
        stored = {name: as_stored(table.columns[name]) for name in self.columns}
        written, rejected = 0, []
        with engine.connect() as connection:
            for some in _chunks(rows, stored):
                bad = self._write(connection, statement, some)
                written += len(some) - len(bad)
                rejected += bad
        if rejected and self.dead_letters is not None:
            send(rejected, self.connection, self.dead_letters, self.pipeline or self.table)
        return Upserted(written, len(rejected))

    def _write(
        self, connection: sa.Connection, statement: Any, rows: list[Any]
    ) -> list[RejectedRow]:
        """Write all in one transaction; if that fails, one by one, to find the bad rows."""
        try:
            with connection.begin():
                connection.execute(statement, rows)
        except SQLAlchemyError:
            rejected = []
            for each in rows:
                try:
                    with connection.begin():
                        connection.execute(statement, [each])
                except sa.exc.DBAPIError as error:
                    if not is_of_row(error):
                        raise
                    reason = f"table {self.table} rejected the row: {error.orig}"
                    if self.dead_letters is None:
                        raise ConfigError(
                            f"{reason}; option deadLetters names a topic for such rows"
                        ) from error
                    rejected.append(RejectedRow(each, reason))
            return rejected
        return []


def _chunks(
    rows: Iterator[Row], stored: Mapping[str, Callable[[Any], Any]]
) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    for each in rows:
        some.append({name: stored[name](value) for name, value in each.asDict().items()})
        if len(some) == ROWS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


@dataclass(frozen=True)
class TableWriter(DataSourceWriter):
    """Writes a batch."""

    upsert: Upsert

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        return self.upsert.write(iterator)


@dataclass(frozen=True)
class TableStreamWriter(DataSourceStreamWriter):
    """Writes a stream."""

    upsert: Upsert

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        return self.upsert.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to do: the tasks have written."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to do: rows written stay, and the retry writes them again."""
