"""Database tables by SQLAlchemy: their columns as Spark types, and upserts by dialect.

Spark's JDBC source can neither follow a table nor upsert into one; a Python source can do both
inside its tasks, and needs no jar.
"""

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from penstock.errors import ConfigError
from penstock.spark.data_source import quoted

KINDS: Final = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.datetime: "timestamp",
    dt.date: "date",
}
ANY_DECIMAL: Final = "decimal(38, 18)"
"""For a column without precision, as in Spark's JDBC source."""
ALIASES: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""The drivers of penstock[database]."""
ROW_STATES: Final = ("22", "23", "44", "P0")
"""SQLSTATE classes that concern a row: its data, a constraint, a view's check, a trigger."""
ROW_CODES: Final = (1644, 1690, 3819, 4025)
"""Error numbers of MySQL and MariaDB for a trigger's SIGNAL, a number out of range and a violated
CHECK: their driver reports these as operational errors, like server problems.
"""


FOLLOWED: Final = (sa.Integer, sa.Numeric, sa.Float, sa.Date, sa.DateTime, sa.String, mysql.YEAR)
"""Types whose values fit into a position, and are compared by the database as they are read."""

AS_TEXT: Final = (sa.JSON, sa.ARRAY, mysql.SET, mysql.TIME)
"""Types that the database itself turns into text."""


class SqliteDecimal(sa.Numeric[decimal.Decimal]):
    """SQLAlchemy would read and write decimals as floats, which changes whole numbers of more than
    15 digits. SQLite itself keeps them, also if they come as text.
    """

    cache_ok = True

    def bind_processor(self, dialect: sa.Dialect) -> Any:  # noqa: ARG002
        return lambda value: str(value) if isinstance(value, decimal.Decimal) else value

    def result_processor(self, dialect: sa.Dialect, coltype: Any) -> Any:
        inherited: Any = super()  # untyped in SQLAlchemy
        of_float = inherited.result_processor(dialect, coltype)
        form = f"{{:.{10 if self.scale is None else self.scale}f}}"
        return lambda value: (
            decimal.Decimal(form.format(decimal.Decimal(value)))
            if isinstance(value, int)
            else of_float(value)
        )


def engine_of(url: str) -> sa.Engine:
    scheme, colon, rest = url.partition("://")
    try:
        # No pool: a task lives for one batch.
        engine = sa.create_engine(ALIASES.get(scheme, scheme) + colon + rest, poolclass=sa.NullPool)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(
            "option url: use sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, mysql://… "
            "or mariadb://…"
        ) from error
    if engine.dialect.name in {"mysql", "mariadb"}:
        sa.event.listen(engine, "connect", _in_utc)
    return engine


def _in_utc(connection: Any, _record: Any) -> None:
    """MySQL returns TIMESTAMP columns in the session's time zone, without naming it."""
    with connection.cursor() as cursor:
        cursor.execute("set time_zone = '+00:00'")


def table_of(engine: sa.Engine, name: str) -> sa.Table:
    schema, _, table = name.rpartition(".")
    try:
        found = sa.Table(table, sa.MetaData(), schema=schema or None, autoload_with=engine)
    except NoSuchTableError as error:
        raise ConfigError(f"option table: there is no table {name}") from error
    except SQLAlchemyError as error:
        raise ConfigError(f"option url: {error.__cause__ or error}") from error
    for each in found.columns:
        if isinstance(each.type, sa.Float):
            each.type.asdecimal = False  # MySQL's dialect would round them to ten decimals
        elif engine.dialect.name == "sqlite" and isinstance(each.type, sa.Numeric):
            each.type = SqliteDecimal(each.type.precision, each.type.scale)
    return found


def check_followed(engine: sa.Engine, column: sa.Column[Any]) -> None:
    """Refuse a column whose values a driver returns differently from how they are compared.

    A four-byte float is returned with few digits but compared as eight bytes: 0.1 is less than
    itself. SQLite's floats always have eight bytes. MySQL orders enums and sets by number, but
    compares them with a text by their text; its times may exceed a day, which Python's cannot.
    """
    if engine.dialect.name == "sqlite":
        return
    kind = column.type.data_type if isinstance(column.type, postgresql.DOMAIN) else column.type
    if isinstance(kind, mysql.ENUM | mysql.SET) or not isinstance(kind, FOLLOWED):
        name = "type that is not known" if isinstance(kind, sa.types.NullType) else str(kind)
        raise ConfigError(
            f"option increasing: {column.name} is a {name}, whose values cannot be followed, or "
            "are compared otherwise than as they are read; follow a column of integers, decimals, "
            "dates, timestamps or texts"
        )
    if isinstance(kind, sa.REAL | sa.FLOAT):
        raise ConfigError(
            f"option increasing: {column.name} is a {kind.__visit_name__} of four bytes, "
            "whose values are rounded: rows would be skipped or read twice; follow a column of "
            "integers, decimals, times, texts or double precision"
        )


def columns_ddl(table: sa.Table) -> str:
    """The columns in Spark's DDL; types without a counterpart are read as text."""
    return ", ".join(f"{quoted(each.name)} {kind_of(each)}" for each in table.columns)


def compared(engine: sa.Engine, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The column as its database compares it. SQLite stores times as text, in two forms: with a
    fraction (SQLAlchemy's) and without (`current_timestamp`). Its decimals are any numbers, which
    SQLAlchemy would round.
    """
    if engine.dialect.name != "sqlite":
        return column
    if isinstance(column.type, sa.DateTime | sa.Time):
        return sa.type_coerce(column, sa.String)
    if isinstance(column.type, sa.Numeric) and not isinstance(column.type, sa.Float):
        return sa.type_coerce(column, sa.types.NullType())
    return column


def as_read(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """The columns as they are selected. For some types, drivers would return Python's dicts, lists,
    sets and times of day, so the database converts them to text.
    """
    return [
        sa.cast(each, sa.Text).label(each.name) if isinstance(each.type, AS_TEXT) else each
        for each in table.columns
    ]


def is_compared_as_stored(column: sa.ColumnElement[Any]) -> bool:
    return isinstance(column, sa.TypeCoerce)


def spellings(column: sa.ColumnElement[Any], text: str) -> tuple[Any, Any]:
    """The first and last value in SQLite that a value of an older checkpoint may stand for. Such a
    checkpoint has numbers as text, and times with a T, which sorts after all other times of that
    day.
    """
    if not isinstance(column.type, sa.String):
        number = decimal.Decimal(text)
        return (int(number) if number == int(number) else float(number),) * 2
    if text[10:11] != "T":
        return text, text
    longest = f"{dt.datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S.%f}"
    return longest.rstrip("0").rstrip("."), longest


def kind_of(column: sa.ColumnElement[Any]) -> str:
    try:
        python = column.type.python_type
    except NotImplementedError:
        return "string"
    if isinstance(column.type, sa.Float):
        return "double"
    if isinstance(column.type, sa.Numeric):
        if column.type.precision is None:
            return ANY_DECIMAL
        return f"decimal({column.type.precision}, {column.type.scale or 0})"
    if isinstance(column.type, mysql.BIGINT) and column.type.unsigned:
        return "decimal(20, 0)"  # its upper half exceeds bigint
    return KINDS.get(python, "string")


def as_spark(kind: str) -> Callable[[Any], Any]:
    """Converts values of a column for Spark. A time without a zone is in UTC."""
    match kind.partition("(")[0]:
        case "string":
            return lambda value: None if value is None else str(value)
        case "timestamp":
            return lambda value: (
                _no_text(value) and (value if value.tzinfo else value.replace(tzinfo=dt.UTC))
            )
        case "date":
            return _no_text
        case "double":
            return lambda value: None if value is None else float(value)
        case "decimal":
            return lambda value: None if value is None else decimal.Decimal(value)
        case _:
            return lambda value: value


def _no_text(value: Any) -> Any:
    """MySQL's driver returns dates that do not exist as text, such as 0000-00-00."""
    if isinstance(value, str):
        raise ConfigError(f"the table has the date {value}, which does not exist")
    return value


def as_stored(column: sa.Column[Any]) -> Callable[[Any], Any]:
    """Converts Spark's values for the column. Spark's times are in the machine's zone, without
    naming that zone.
    """
    if kind_of(column) != "timestamp":
        return lambda value: value
    if getattr(column.type, "timezone", False):
        return lambda value: value and value.astimezone(dt.UTC)
    return lambda value: value and value.astimezone(dt.UTC).replace(tzinfo=None)


def is_of_row(error: sa.exc.DBAPIError) -> bool:
    """Whether the row caused the error. Any doubt counts as an error of the database: otherwise a
    read-only standby, a missing table or a missing grant would turn all rows into dead letters.
    """
    if error.connection_invalidated:
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith(ROW_STATES)
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if isinstance(error, sa.exc.IntegrityError | sa.exc.DataError) or code in ROW_CODES:
        return True
    # SQLite's driver raises this for a value of an unknown type.
    return "binding parameter" in str(error.orig)


def _bound(engine: sa.Engine, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """A value to write. JSON comes as text, which SQLAlchemy would encode again as a JSON string,
    and a missing value as JSON null.
    """
    if not isinstance(column.type, sa.JSON):
        return sa.bindparam(column.name)
    text: sa.ColumnElement[Any] = sa.bindparam(column.name, type_=sa.Text())
    return sa.cast(text, column.type) if engine.dialect.name == "postgresql" else text


def check_unique(engine: sa.Engine, table: sa.Table, key: Sequence[str]) -> None:
    """Refuse a key that does not identify a row in MySQL, which would insert the row once more with
    each retry. Other databases refuse that themselves.
    """
    if engine.dialect.name not in {"mysql", "mariadb"}:
        return
    inspector = sa.inspect(engine)
    if table.name in inspector.get_view_names(table.schema):
        return  # its table may have such an index
    found = inspector.get_unique_constraints(table.name, table.schema)
    unique = [each["column_names"] for each in found] + [table.primary_key.columns.keys()]
    if not any(each and set(each) <= set(key) for each in unique):
        raise ConfigError(
            f"option key: table {table.name} has neither a primary key nor a unique index of "
            f"{', '.join(key)}: rows would be inserted again instead of replaced"
        )


def _own_key(table: sa.Table, key: Sequence[str], inserted: Any) -> sa.ColumnElement[Any]:
    """The key of the row that MySQL is about to replace, or its error 1690 if that is another row,
    which has the value of another unique index. It would get these columns, and the row's own would
    be lost.
    """
    own, text = table.columns[key[0]], "'another row has one of its unique values'"
    is_same = sa.and_(*(table.columns[name].op("<=>")(inserted[name]) for name in key))
    # Not a constant, which MySQL might compute for every row. No parameters: the driver sends many
    # rows as one statement, and replaces only those in VALUES.
    long = sa.func.concat_ws(sa.literal_column("''"), sa.literal_column(text), own)
    too_large: sa.ColumnElement[int] = sa.literal_column("18446744073709551615")
    too_large += sa.func.length(long)
    return sa.case((sa.or_(is_same, too_large > sa.literal_column("0")), own))


def upsert(engine: sa.Engine, table: sa.Table, key: Sequence[str], columns: Sequence[str]) -> Any:
    """An insert that replaces the row with the same key."""
    values: dict[str, Any] = {name: _bound(engine, table.columns[name]) for name in columns}
    others = [name for name in columns if name not in key]
    match engine.dialect.name:
        case "sqlite" | "postgresql" as dialect:
            made: Any = (sqlite if dialect == "sqlite" else postgresql).insert(table)
            made = made.values(values)
            if not others:
                return made.on_conflict_do_nothing(index_elements=list(key))
            new = {name: made.excluded[name] for name in others}
            return made.on_conflict_do_update(index_elements=list(key), set_=new)
        case "mysql" | "mariadb":
            mine = mysql.insert(table).values(values)
            return mine.on_duplicate_key_update(
                {key[0]: _own_key(table, key, mine.inserted)}
                | {name: mine.inserted[name] for name in others}
            )
        case other:
            raise ConfigError(f"option url: no upsert for {other}; use SQLite, PostgreSQL or MySQL")
