"""Tables of databases (here SQLite): columns, new rows, upserts, rejected rows."""

import datetime as dt
import sqlite3
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, StructField, StructType
from sqlalchemy.dialects import mysql, postgresql

from penstock.errors import ConfigError
from penstock.spark.connector import table as table_module
from penstock.spark.connector.table import check_followed, engine_of, is_of_row
from penstock.spark.connector.table_source import TableFollower, TableReader, TableSource, Upsert
from support.spark.table_following import Following

DDL = (
    "create table t (id integer primary key, name text not null, at datetime, amount numeric(9,2))"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    execute(f"sqlite:///{tmp_path}/d.db", DDL)
    return f"sqlite:///{tmp_path}/d.db"


def execute(url: str, statement: str) -> list[Any]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        rows = connection.execute(statement).fetchall()
        connection.commit()
    finally:
        connection.close()
    return rows


def test_columns_get_types_that_spark_has(url: str) -> None:
    schema = TableSource({"url": url, "table": "t"}).schema()
    assert schema == "`id` bigint, `name` string, `at` timestamp, `amount` decimal(9, 2)"


def test_new_rows_are_read_in_order(url: str) -> None:
    follower = TableFollower(url, "t", "id")
    limit = follower.getDefaultReadLimit()
    start = follower.initialOffset()
    assert follower.latestOffset(start, limit) == start
    execute(
        url,
        "insert into t values (1, 'a', '2026-01-01 00:00:00.000000', 1.5), (2, 'b', null, null)",
    )
    first = follower.latestOffset(start, limit)
    (part,) = follower.partitions(start, first)
    assert [row[:2] for row in follower.read(part)] == [(1, "a"), (2, "b")]
    execute(url, "insert into t values (3, 'c', null, null)")
    second = follower.latestOffset(first, limit)
    (part,) = follower.partitions(first, second)
    assert [row[:2] for row in follower.read(part)] == [(3, "c")]
    assert follower.partitions(second, second) == []


def test_a_column_of_times_can_be_followed(url: str) -> None:
    execute(url, "insert into t values (1, 'a', '2026-01-01 00:00:00.000000', null)")
    follower = TableFollower(url, "t", "at")
    first = follower.latestOffset(follower.initialOffset(), follower.getDefaultReadLimit())
    execute(url, "insert into t values (2, 'b', '2026-01-02 00:00:00.000000', null)")
    second = follower.latestOffset(first, follower.getDefaultReadLimit())
    (part,) = follower.partitions(first, second)
    assert [row[0] for row in follower.read(part)] == [2]


def test_json_is_read_and_written_as_its_text(url: str) -> None:
    execute(url, "create table j (id integer primary key, doc json)")
    text = '{"a": null, "b": [true, 1.10]}'
    upsert = Upsert(url, "j", ("id",), ("id", "doc"))
    upsert.write(iter([Row(id=1, doc=text), Row(id=2, doc=None)]))
    assert execute(url, "select doc, json_type(doc) from j") == [(text, "object"), (None, None)]
    reader = TableReader(url, "j")
    assert [*reader.read(*reader.partitions())] == [(1, text), (2, None)]


def test_whole_decimals_keep_all_their_digits(url: str) -> None:
    execute(url, "create table big (id integer primary key, n numeric(20, 0), m numeric(9, 2))")
    upsert = Upsert(url, "big", ("id",), ("id", "n", "m"))
    large, small = Decimal(9007199254740993), Decimal("0.25")
    upsert.write(iter([Row(id=1, n=large, m=small), Row(id=2, n=Decimal(5), m=None)]))
    found = execute(url, "select n, m, typeof(n) from big")
    assert found == [(9007199254740993, 0.25, "integer"), (5, None, "integer")]
    reader = TableReader(url, "big")
    rows = [row[1:] for row in reader.read(*reader.partitions())]
    assert rows == [(large, small), (Decimal(5), None)]


def test_rows_of_a_key_replace_each_other(url: str) -> None:
    upsert = Upsert(url, "t", ("id",), ("id", "name"))
    upsert.check()
    upsert.write(iter([Row(id=1, name="a"), Row(id=2, name="b"), Row(id=1, name="c")]))
    assert upsert.write(iter([Row(id=2, name="d")])).rows == 1
    assert execute(url, "select id, name from t order by id") == [(1, "c"), (2, "d")]


def test_a_rejected_row_ends_the_write_and_is_named(url: str) -> None:
    upsert = Upsert(url, "t", ("id",), ("id", "name"))
    with pytest.raises(ConfigError, match=r"rejected the row: NOT NULL.*deadLetters"):
        upsert.write(iter([Row(id=1, name="a"), Row(id=2, name=None)]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "sqlite:///{}", "table": "no"}, "there is no table no"),
        ({"url": "oracle", "table": "t"}, "option url: use sqlite:///FILE"),
        ({"url": "sqlite:///{}", "tabel": "t"}, "did you mean table"),
        ({"url": "sqlite:///{}"}, "option table is missing"),
    ],
)
def test_mistakes_are_errors(url: str, options: dict[str, str], words: str) -> None:
    path = url.removeprefix("sqlite:///")
    given = {name: value.format(path) for name, value in options.items()}
    with pytest.raises(ConfigError) as caught:
        TableSource(given).schema()
    assert words in str(caught.value)


def test_rows_with_two_columns_of_one_name_are_refused(url: str) -> None:
    schema = StructType([StructField("id", IntegerType()), StructField("id", IntegerType())])
    with pytest.raises(ConfigError, match="the rows have 2 columns called id"):
        TableSource({"url": url, "table": "t", "key": "id"}).streamWriter(schema, False)


def test_a_key_column_missing_in_the_rows_is_an_error(url: str) -> None:
    schema = StructType([StructField("id", IntegerType())])
    with pytest.raises(ConfigError, match="the rows have no column name"):
        TableSource({"url": url, "table": "t", "key": "name"}).streamWriter(schema, False)


def test_settings_that_spark_passes_on_are_accepted(url: str) -> None:
    handed_on = {"queryName": "q", "checkpointLocation": "/c", "path": "/p"}
    source = TableSource({"url": url, "table": "t", "key": "id", **handed_on})
    source.streamWriter(StructType([StructField("id", IntegerType())]), False)


def test_times_are_utc_whatever_the_time_zone_of_the_machine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
        # As Spark's workers hand over a timestamp.
        reported = noon.astimezone().replace(tzinfo=None)
        upsert = Upsert(url, "t", ("id",), ("id", "name", "at"))
        upsert.write(iter([Row(id=1, name="a", at=reported), Row(id=2, name="b", at=None)]))
        follower = TableFollower(url, "t", "id")
        (part,) = follower.partitions({"after": None}, {"after": 2})
        assert [row[2] for row in follower.read(part)] == [noon, None]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert execute(url, "select at from t where id = 1") == [("2026-01-01 12:00:00.000000",)]


@pytest.mark.parametrize("increasing", ["at", "amount", "name"])
def test_rows_that_share_a_value_are_all_read_once(url: str, increasing: str) -> None:
    following = Following(url, "t", increasing)

    def insert(number: int, value: int) -> None:
        at = f"'2026-01-01 00:00:0{value}.000000'"
        execute(url, f"insert into t values ({number}, 'n{value}', {at}, {value}.5)")

    insert(5, 1)
    assert following.ids() == [5]
    insert(6, 1)
    insert(3, 1)
    assert sorted(following.ids()) == [3, 6]
    assert following.ids() == []
    insert(7, 1)
    insert(1, 2)
    insert(2, 2)
    assert sorted(following.ids()) == [1, 2, 7]
    insert(4, 2)
    assert following.ids() == [4]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text collate nocase", ["'A'", "'a'", "'A'", "'B'", "'b'"]),
        ("datetime", ["'2026-01-01 00:00:01'"] * 3 + ["'2026-01-01 00:00:02'"] * 2),
        ("numeric(9,2)", ["1.004", "1.006", "1.006", "1.009", "2"]),
        ("blob", ["x'61'", "x'61'", "x'ff'"]),
        ("time", ["'10:00:00'", "'10:00:00'", "'11:00:00'"]),
        ("decimal(20,0)", ["9007199254740994", "9007199254740995", "9007199254740996"]),
        ("real", ["0.1", "0.1", "0.1000000000000001", "0.7", "1e300"]),
    ],
    ids=[
        "a collation without capitals",
        "times without fractions",
        "numbers with more digits than they should have",
        "bytes",
        "times of a day without fractions",
        "numbers beyond those of floats",
        "floats, which have eight bytes",
    ],
)
def test_the_database_decides_which_values_are_equal(
    url: str, kind: str, values: list[str]
) -> None:
    execute(url, f"create table c (id integer primary key, at {kind})")
    following = Following(url, "c", "at")
    for number, value in enumerate(values):
        execute(url, f"insert into c values ({number}, {value})")
        assert following.ids() == [number]
    assert following.ids() == []


@pytest.mark.parametrize("named", [True, False], ids=["names of rows", "no names"])
def test_an_older_checkpoint_with_a_time_of_sqlite_still_works(url: str, named: bool) -> None:
    """The stored position is a time, and after all texts of its day."""
    execute(url, "create table c (id integer primary key, at datetime)")
    execute(url, "insert into c values (1, '2026-01-01 00:00:10.000000')")
    following = Following(url, "c", "at")
    assert following.ids() == [1]
    following.at = {"after": "2026-01-01T00:00:10"} | (
        {"read": following.at["read"]} if named else {}
    )
    execute(url, "insert into c values (2, '2026-01-01 00:00:10'), (3, '2026-01-01 05:00:00')")
    assert following.ids() == ([2, 3] if named else [3])
    assert following.ids() == []


@pytest.mark.parametrize("after", ["1.5", "1"])
def test_an_older_checkpoint_with_a_number_of_sqlite_still_works(url: str, after: str) -> None:
    execute(url, "create table c (id integer primary key, n numeric(9,2))")
    execute(url, f"insert into c values (1, {after})")
    following = Following(url, "c", "n")
    assert following.ids() == [1]
    following.at = {"after": after, "read": following.at["read"]}
    execute(url, f"insert into c values (2, {after}), (3, 10)")
    assert following.ids() == [2, 3]


def test_a_batch_planned_by_an_older_version_is_read_again_unchanged(url: str) -> None:
    execute(url, "create table c (id integer primary key, at datetime)")
    execute(url, "insert into c values (1, '2026-01-01 00:00:10.000000')")
    following = Following(url, "c", "at")
    following.ids()
    end = {"after": "2026-01-01T00:00:10", "read": following.at["read"]}
    execute(url, "insert into c values (2, '2026-01-01 00:00:10'), (3, '2026-01-01 05:00:00')")
    (part,) = following.follower.partitions({"after": None}, end)
    assert [row[0] for row in following.follower.read(part)] == [1]
    following.at = end
    assert following.ids() == [2, 3]


def test_times_of_sqlite_that_are_stored_with_a_t_are_read_once(url: str) -> None:
    execute(url, "create table c (id integer primary key, at datetime)")
    following = Following(url, "c", "at")
    for number, hour in enumerate([1, 1, 2]):
        execute(url, f"insert into c values ({number}, '2026-01-01T0{hour}:00:00')")
        assert following.ids() == [number]
    assert following.ids() == []


@pytest.mark.parametrize(("table", "increasing"), [("other", "id"), ("t", "amount")])
def test_the_checkpoint_of_another_table_or_column_is_refused(
    url: str, table: str, increasing: str
) -> None:
    """Rows of `other` below the position would never be read, and those of `t` twice."""
    execute(url, DDL.replace("table t", "table other"))
    for name in ("t", "other"):
        execute(url, f"insert into {name} values (1, 'a', null, 1), (2, 'b', null, 2)")
    following = Following(url, "t", "id")
    assert following.ids() == [1, 2]
    before, changed = following.at, TableFollower(url, table, increasing)
    words = f"of column id of table t, and the query follows {increasing} of {table}; use another"
    with pytest.raises(ConfigError, match=words):
        changed.latestOffset(before, changed.getDefaultReadLimit())
    with pytest.raises(ConfigError, match=words):
        changed.partitions(changed.initialOffset(), before)


def test_a_checkpoint_fits_whether_the_schema_is_named_or_not(url: str) -> None:
    execute(url, "insert into t values (1, 'a', null, 1)")
    following = Following(url, "main.t", "id")
    assert following.ids() == [1]
    following.follower = TableFollower(url, "t", "id")
    assert following.ids() == []


def test_rows_are_not_read_again_when_values_become_unique(url: str) -> None:
    execute(url, "create table c (id integer primary key, n int)")
    execute(url, "insert into c values (1, 5)")
    following = Following(url, "c", "n")
    assert following.ids() == [1]
    execute(url, "drop table c")
    execute(url, "create table c (id integer primary key, n int unique)")
    execute(url, "insert into c values (1, 5), (2, 6)")
    assert following.ids() == [2]


def test_a_row_added_while_a_batch_is_read_belongs_to_the_next(url: str) -> None:
    execute(url, "insert into t values (1, 'a', null, 1)")
    following = Following(url, "t", "amount")
    start = following.at
    end = following.follower.latestOffset(start, following.follower.getDefaultReadLimit())
    execute(url, "insert into t values (2, 'b', null, 1)")
    (part,) = following.follower.partitions(start, end)
    assert [row[0] for row in following.follower.read(part)] == [1]
    assert [row[0] for row in following.follower.read(part)] == [1], "a retry reads the same"
    following.at = end
    assert following.ids() == [2]


def test_a_position_without_rows_is_after_all_rows_of_its_value(url: str) -> None:
    execute(url, "insert into t values (1, 'a', null, 1), (2, 'b', null, 1), (3, 'c', null, 2)")
    following = Following(url, "t", "amount")
    following.at = {"after": "1"}
    assert following.ids() == [3]


def failure(kind: type[Exception], *args: object, state: str | None = None) -> sa.exc.DBAPIError:
    orig = kind(*args)
    if state is not None:
        orig.sqlstate = state  # type: ignore[attr-defined]
    made = sa.exc.DBAPIError.instance(
        "insert",
        {},
        orig,
        sqlite3.Error,
        connection_invalidated=False,
        dialect=sa.create_engine("sqlite://").dialect,
    )
    assert isinstance(made, sa.exc.DBAPIError)
    return made


@pytest.mark.parametrize(
    ("error", "of_row"),
    [
        (failure(sqlite3.IntegrityError, "NOT NULL constraint failed"), True),
        (failure(sqlite3.DataError, 1264, "out of range"), True),
        (failure(sqlite3.OperationalError, 3819, "check"), True),
        (failure(sqlite3.OperationalError, 1644, "a trigger's signal"), True),
        (failure(sqlite3.InterfaceError, "Error binding parameter 1"), True),
        (failure(sqlite3.OperationalError, "attempt to write a readonly database"), False),
        (failure(sqlite3.OperationalError, "no such table: t"), False),
        (failure(sqlite3.ProgrammingError, 1146, "no such table"), False),
        (failure(sqlite3.InternalError, 1290, "read only"), False),
        (failure(sqlite3.DatabaseError, "x", state="23505"), True),
        (failure(sqlite3.DatabaseError, "x", state="22001"), True),
        (failure(sqlite3.ProgrammingError, "x", state="P0001"), True),
        (failure(sqlite3.InternalError, "x", state="25006"), False),
        (failure(sqlite3.ProgrammingError, "x", state="42P01"), False),
        (failure(sqlite3.ProgrammingError, "x", state="42501"), False),
        (failure(sqlite3.InternalError, "x", state="25P02"), False),
        (failure(sqlite3.OperationalError, "x", state="57P01"), False),
    ],
)
def test_only_errors_about_a_row_are_blamed_on_it(error: sa.exc.DBAPIError, of_row: bool) -> None:
    assert is_of_row(error) is of_row


def test_a_missing_table_makes_no_dead_letters(url: str) -> None:
    upsert = Upsert(url, "t", ("id",), ("id", "name"), "dead")
    execute(url, "create table other (id integer primary key, name text)")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    statement = table_module.upsert(
        engine, table_module.table_of(engine, "other"), ["id"], ["id", "name"]
    )
    execute(url, "drop table other")
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError, match="no such"):
        upsert._write(connection, statement, [{"id": 1, "name": "a"}])


@pytest.mark.parametrize(
    ("url", "kind", "name"),
    [
        ("postgresql://u@h/d", postgresql.INTERVAL(), "INTERVAL"),
        ("postgresql://u@h/d", postgresql.INET(), "INET"),
        ("postgresql://u@h/d", postgresql.UUID(), "UUID"),
        ("postgresql://u@h/d", postgresql.BYTEA(), "BYTEA"),
        ("postgresql://u@h/d", postgresql.JSONB(), "JSONB"),
        ("postgresql://u@h/d", postgresql.TIME(), "TIME"),
        ("postgresql://u@h/d", sa.Boolean(), "BOOLEAN"),
        ("postgresql://u@h/d", postgresql.DOMAIN("share", sa.REAL()), "REAL of four bytes"),
        ("mysql://u@h/d", mysql.BIT(8), "BIT"),
        ("mysql://u@h/d", mysql.ENUM("a"), "ENUM"),
        ("mysql://u@h/d", sa.types.NullType(), "type that is not known"),  # such as a geometry
    ],
)
def test_a_column_whose_values_cannot_be_followed_is_refused(
    url: str, kind: sa.types.TypeEngine[Any], name: str
) -> None:
    with pytest.raises(ConfigError, match=f"option increasing: x is a {name}.*follow a column of"):
        check_followed(engine_of(url), sa.Column("x", kind))


@pytest.mark.parametrize(
    "kind",
    [
        sa.BigInteger(),
        sa.Numeric(20, 0),
        sa.Date(),
        postgresql.TIMESTAMP(timezone=True),
        postgresql.DOUBLE_PRECISION(),
        sa.String(),
        postgresql.DOMAIN("positive", sa.Integer()),
        mysql.YEAR(),
        mysql.DATETIME(),
    ],
)
def test_other_columns_are_followed(kind: sa.types.TypeEngine[Any]) -> None:
    check_followed(engine_of("postgresql://u@h/d"), sa.Column("x", kind))
