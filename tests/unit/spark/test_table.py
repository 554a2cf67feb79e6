"""Tables of databases, here SQLite's: columns, rows that follow, upserts, rows that are refused."""

import datetime as dt
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.errors import ConfigError
from penstock.spark.connector.table_source import TableFollower, TableSource, Upsert

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


def test_new_rows_follow_each_other(url: str) -> None:
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


def test_a_time_can_be_followed_too(url: str) -> None:
    execute(url, "insert into t values (1, 'a', '2026-01-01 00:00:00.000000', null)")
    follower = TableFollower(url, "t", "at")
    first = follower.latestOffset(follower.initialOffset(), follower.getDefaultReadLimit())
    execute(url, "insert into t values (2, 'b', '2026-01-02 00:00:00.000000', null)")
    second = follower.latestOffset(first, follower.getDefaultReadLimit())
    (part,) = follower.partitions(first, second)
    assert [row[0] for row in follower.read(part)] == [2]


def test_rows_of_a_key_replace_each_other(url: str) -> None:
    upsert = Upsert(url, "t", ("id",), ("id", "name"), None, "")
    upsert.check()
    upsert.write(iter([Row(id=1, name="a"), Row(id=2, name="b"), Row(id=1, name="c")]))
    assert upsert.write(iter([Row(id=2, name="d")])).rows == 1
    assert execute(url, "select id, name from t order by id") == [(1, "c"), (2, "d")]


def test_a_refused_row_ends_the_write_and_is_named(url: str) -> None:
    upsert = Upsert(url, "t", ("id",), ("id", "name"), None, "")
    with pytest.raises(ConfigError, match=r"refused the row: NOT NULL.*deadLetters"):
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
def test_mistakes_are_told(url: str, options: dict[str, str], words: str) -> None:
    path = url.removeprefix("sqlite:///")
    given = {name: value.format(path) for name, value in options.items()}
    with pytest.raises(ConfigError) as caught:
        TableSource(given).schema()
    assert words in str(caught.value)


def test_a_key_that_the_rows_do_not_have_is_told(url: str) -> None:
    schema = StructType([StructField("id", IntegerType())])
    with pytest.raises(ConfigError, match="the rows have no column name"):
        TableSource({"url": url, "table": "t", "key": "name"}).streamWriter(schema, False)


def test_what_spark_hands_on_of_a_query_is_no_mistake(url: str) -> None:
    handed_on = {"queryName": "q", "checkpointLocation": "/c", "path": "/p"}
    source = TableSource({"url": url, "table": "t", "key": "id", **handed_on})
    source.streamWriter(StructType([StructField("id", IntegerType())]), False)


def test_times_are_those_of_utc_whatever_the_machine_has(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
        # As Spark's workers hand over a timestamp.
        told = noon.astimezone().replace(tzinfo=None)
        upsert = Upsert(url, "t", ("id",), ("id", "name", "at"), None, "")
        upsert.write(iter([Row(id=1, name="a", at=told), Row(id=2, name="b", at=None)]))
        follower = TableFollower(url, "t", "id")
        (part,) = follower.partitions({"after": None}, {"after": 2})
        assert [row[2] for row in follower.read(part)] == [noon, None]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert execute(url, "select at from t where id = 1") == [("2026-01-01 12:00:00.000000",)]
