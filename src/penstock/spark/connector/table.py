"""Tables of databases by SQLAlchemy: their columns as Spark sees them, and upserts by dialect.

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

KINDS: Final = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.datetime: "timestamp",
    dt.date: "date",
}
ALIASES: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""The drivers that come with penstock[database]."""


def engine_of(url: str) -> sa.Engine:
    scheme, colon, rest = url.partition("://")
    try:
        # One connection of its own: a task lives for one batch.
        return sa.create_engine(ALIASES.get(scheme, scheme) + colon + rest, poolclass=sa.NullPool)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(
            "option url: use sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE or mysql://…"
        ) from error


def table_of(engine: sa.Engine, name: str) -> sa.Table:
    schema, _, table = name.rpartition(".")
    try:
        return sa.Table(table, sa.MetaData(), schema=schema or None, autoload_with=engine)
    except NoSuchTableError as error:
        raise ConfigError(f"option table: there is no table {name}") from error
    except SQLAlchemyError as error:
        raise ConfigError(f"option url: {error.__cause__ or error}") from error


def columns_ddl(table: sa.Table) -> str:
    """The columns in Spark's words; types that it has no like of are read as text."""
    return ", ".join(f"`{each.name}` {kind_of(each)}" for each in table.columns)


def kind_of(column: sa.Column[Any]) -> str:
    try:
        python = column.type.python_type
    except NotImplementedError:
        return "string"
    if python is decimal.Decimal:
        precision = getattr(column.type, "precision", None) or 38
        return f"decimal({precision}, {getattr(column.type, 'scale', None) or 0})"
    return KINDS.get(python, "string")


def as_spark(kind: str) -> Callable[[Any], Any]:
    """Values of a column as Spark takes them."""
    return (lambda value: None if value is None else str(value)) if kind == "string" else _same


def _same(value: Any) -> Any:
    return value


def upsert(engine: sa.Engine, table: sa.Table, key: Sequence[str], columns: Sequence[str]) -> Any:
    """An insert that replaces the row of the same key."""
    values: dict[str, Any] = {name: sa.bindparam(name) for name in columns}
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
            # A row of keys alone is set to itself: MySQL has no other word for "leave it".
            return mine.on_duplicate_key_update(
                {name: mine.inserted[name] for name in others or key}
            )
        case other:
            raise ConfigError(f"option url: no upsert for {other}; use SQLite, PostgreSQL or MySQL")
