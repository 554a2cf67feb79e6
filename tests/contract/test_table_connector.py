"""The table connector against a real PostgreSQL, without Spark: its driver and dialect."""

from collections.abc import Iterator

import psycopg
import pytest
from pyspark.sql import Row

from peers.postgres import Postgres
from penstock.errors import ConfigError
from penstock.spark.connector.table_source import TableFollower, TableReader, TableSource, Upsert
from support.spark.table_following import Following

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Postgres() as postgres:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("create schema shop")
            connection.execute(
                "create table shop.t (id bigint primary key, name text not null, "
                "at timestamptz, amount numeric(9, 2), tags jsonb, code uuid, weight real, "
                "price numeric)"
            )
        yield postgres.url


def test_rows_are_upserted_and_followed(url: str) -> None:
    upsert = Upsert(url, "shop.t", ("id",), ("id", "name"))
    upsert.check()
    upsert.write(iter([Row(id=1, name="a"), Row(id=2, name="b"), Row(id=1, name="c")]))
    follower = TableFollower(url, "shop.t", "id")
    start = follower.initialOffset()
    end = follower.latestOffset(start, follower.getDefaultReadLimit())
    (part,) = follower.partitions(start, end)
    assert [row[:2] for row in follower.read(part)][:2] == [(1, "c"), (2, "b")]


def test_texts_that_the_collation_calls_equal_are_read_once_each(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "create collation shop.no_case "
            "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
        connection.execute(
            "create table shop.named (id int primary key, name text collate shop.no_case)"
        )
        following = Following(url, "shop.named", "name")
        for number, name in enumerate(["A", "a", "A", "B", "b"]):
            connection.execute("insert into shop.named values (%s, %s)", (number, name))
            assert following.ids() == [number]
    assert following.ids() == []


def test_json_and_arrays_are_read_as_text(url: str) -> None:
    text = '{"a": [1, null], "b": true}'
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table shop.docs (id int primary key, doc jsonb, tags text[])")
        upsert = Upsert(url, "shop.docs", ("id",), ("id", "doc"))
        upsert.write(iter([Row(id=1, doc=text), Row(id=2, doc=None)]))
        connection.execute("update shop.docs set tags = '{a,null}' where id = 1")
        found = connection.execute("select jsonb_typeof(doc) from shop.docs order by id")
        assert found.fetchall() == [("object",), (None,)]
        with pytest.raises(
            ConfigError, match="rejected the row: invalid input syntax for type json"
        ):
            upsert.write(iter([Row(id=3, doc="{")]))
    reader = TableReader(url, "shop.docs")
    rows = sorted(reader.read(*reader.partitions()))
    assert rows == [(1, text, "{a,NULL}"), (2, None, None)]


def test_a_time_of_day_column_is_not_followed(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table shop.times (id int primary key, at time)")
    with pytest.raises(ConfigError, match="option increasing: at is a TIME"):
        TableFollower(url, "shop.times", "at")


def test_columns_get_types_that_spark_has(url: str) -> None:
    assert TableSource({"url": url, "table": "shop.t"}).schema() == (
        "`id` bigint, `name` string, `at` timestamp, `amount` decimal(9, 2), `tags` string, "
        "`code` string, `weight` double, `price` decimal(38, 18)"
    )


def test_one_rejected_row_does_not_affect_others(url: str) -> None:
    upsert = Upsert(url, "shop.t", ("id",), ("id", "name"))
    with pytest.raises(ConfigError, match="rejected the row: null value in column"):
        upsert.write(iter([Row(id=7, name="kept"), Row(id=8, name=None)]))
    with psycopg.connect(url) as connection:
        found = connection.execute("select name from shop.t where id = 7").fetchall()
    assert found == [("kept",)]


def test_a_missing_database_is_an_error() -> None:
    with pytest.raises(ConfigError, match="option url"):
        TableSource({"url": "postgresql://x@127.0.0.1:1/x", "table": "t"}).schema()


def test_four_byte_floats_are_not_followed_but_eight_byte_floats_are(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "create table shop.floats (id int primary key, short real, long double precision)"
        )
        with pytest.raises(ConfigError, match="option increasing: short is a REAL of four bytes"):
            TableFollower(url, "shop.floats", "short")
        following = Following(url, "shop.floats", "long")
        for number, value in enumerate([0.1, 0.1, 0.1 + 1e-16, 0.7, 1e300]):
            connection.execute("insert into shop.floats values (%s, %s, %s)", (number, 0.1, value))
            assert following.ids() == [number]
    assert following.ids() == []


@pytest.mark.parametrize("kind", ["double precision", "numeric"])
def test_a_column_with_nan_is_not_followed(url: str, kind: str) -> None:
    """PostgreSQL sorts NaN as the highest number, so no later row would be read."""
    name = f"shop.nan_{kind[:3]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create table {name} (id int primary key, amount {kind})")
        connection.execute(f"insert into {name} values (1, 1.5)")
        following = Following(url, name, "amount")
        assert following.ids() == [1]
        connection.execute(f"insert into {name} values (2, 'NaN'), (3, 2.5)")
        with pytest.raises(ConfigError, match=f"amount is NaN in some rows of {name}"):
            following.ids()
