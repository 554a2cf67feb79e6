"""A table of a real MariaDB is copied to a topic, and a topic to a table."""

import datetime as dt
import decimal
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import Row

from clients.protocol import Record
from peers.mariadb import DATABASE, MariaDb
from peers.penstock import PenstockBroker
from penstock.errors import ConfigError
from penstock.spark.connector.table_source import TableFollower, TableReader, TableSource, Upsert
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from support.spark.flow_runs import forget_last_commit, records, run_flow
from support.spark.spark_rows import Lab, lab_beside
from support.spark.table_following import Following
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
ORDERS = (
    "create table {} (id bigint primary key, customer varchar(20) not null, "
    "total decimal(9, 2) check (total >= 0), at datetime(3))"
)
SCHEMA = "id bigint, customer string, total decimal(9,2), at timestamp"


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    with MariaDb() as found:
        yield found


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


def ask(mariadb: MariaDb, *statements: str) -> list[tuple[Any, ...]]:
    """Runs the statements; returns the rows of the last one."""
    connection = pymysql.connect(
        host="127.0.0.1", port=mariadb.port, user="root", database=DATABASE, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        return [*cursor.fetchall()]


def test_a_table_is_copied_to_a_topic_row_by_row(
    lab: Lab, mariadb: MariaDb, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic, 1)
    ask(
        mariadb,
        ORDERS.format("orders"),
        "insert into orders values (1, 'ann', 10.50, '2026-01-01 10:00:00.25'), "
        "(2, 'bob', 0, null)",
    )
    flow = FlowSpec(
        name="orders",
        source=From(table="orders", url=mariadb.url, increasing="id"),
        to=To(topic=topic, key="id", options={"transactional": "true"}),
    )
    run_flow(lab, flow, tmp_path)
    ask(mariadb, "insert into orders values (3, 'eve', 7, '2026-01-02 12:00:00')")
    run_flow(lab, flow, tmp_path)
    run_flow(lab, flow, tmp_path)  # nothing new
    (found,) = committed(lab.penstock.bootstrap, topic, 1)
    assert [json.loads(each) for each in found] == [
        {"id": 1, "customer": "ann", "total": 10.5, "at": "2026-01-01T10:00:00.250000Z"},
        {"id": 2, "customer": "bob", "total": 0.0},
        {"id": 3, "customer": "eve", "total": 7.0, "at": "2026-01-02T12:00:00.000000Z"},
    ]


def test_upserting_a_topic_twice_changes_nothing(
    lab: Lab, mariadb: MariaDb, topic: str, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-dead"):
        lab.rdkafka.create_topic(name, 1)
    rows = [
        {"id": 1, "customer": "ann", "total": 10, "at": "2026-01-01T10:00:00.250Z"},
        {"id": 2, "customer": None, "total": 5},
        {"id": 3, "customer": "bob", "total": -1},
        {"id": 4, "customer": "b" * 30, "total": 1},
        {"id": 1, "customer": "eve 🎉", "total": 7.25, "at": "2026-01-02T12:00:00Z"},
    ]
    lab.rdkafka.produce(topic, [Record(json.dumps(each).encode()) for each in rows])
    ask(mariadb, ORDERS.format("copied"))
    flow = FlowSpec(
        name="copy",
        source=From(topic=topic, format="json", schema=SCHEMA),
        to=To(table="copied", url=mariadb.url, key="id"),
        dead_letters=f"{topic}-dead",
    )
    run_flow(lab, flow, tmp_path)
    expected = (1, "eve 🎉", decimal.Decimal("7.25"), dt.datetime(2026, 1, 2, 12))  # noqa: DTZ001
    assert ask(mariadb, "select * from copied") == [expected]
    dead = records(lab, f"{topic}-dead")
    reasons = {
        json.loads(each.value or b"")["id"]: dict(each.headers)["penstock-error"] for each in dead
    }
    assert sorted(reasons) == [2, 3, 4]
    assert b"cannot be null" in reasons[2]
    assert b"CONSTRAINT" in reasons[3]
    assert b"Data too long" in reasons[4]
    forget_last_commit(tmp_path, "copy")
    run_flow(lab, flow, tmp_path)
    assert ask(mariadb, "select * from copied") == [expected]


def test_a_row_with_a_unique_value_of_another_row_is_rejected(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table users (id int primary key, name varchar(9) unique, n int)",
        "insert into users values (1, 'ann', 1)",
    )
    upsert = Upsert(mariadb.url, "users", ("id",), ("id", "name", "n"))
    upsert.check()
    with pytest.raises(ConfigError, match="another row has one of its unique values"):
        upsert.write(iter([Row(id=3, name="ann", n=9)]))
    assert ask(mariadb, "select * from users") == [(1, "ann", 1)]
    for _ in range(2):
        upsert.write(iter([Row(id=3, name="bob", n=9), Row(id=1, name="ann", n=2)]))
    assert ask(mariadb, "select * from users order by id") == [(1, "ann", 2), (3, "bob", 9)]


def test_a_key_that_identifies_no_row_is_refused(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table loose (id int, n int, unique (n))",
        "create view loose_view as select * from loose",
    )
    with pytest.raises(ConfigError, match="table loose has neither a primary key nor a unique"):
        Upsert(mariadb.url, "loose", ("id",), ("id", "n")).check()
    Upsert(mariadb.url, "loose", ("id", "n"), ("id", "n")).check()
    Upsert(mariadb.url, "loose_view", ("n",), ("id", "n")).check()


def test_a_date_that_does_not_exist_is_an_error(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table days (id int primary key, day date, at datetime)",
        "set sql_mode = ''",
        "insert into days values (1, '0000-00-00', null), (2, null, '0000-00-00 00:00:00')",
    )
    reader = TableReader(mariadb.url, "days")
    with pytest.raises(ConfigError, match="the date 0000-00-00, which does not exist"):
        list(reader.read(*reader.partitions()))


def test_columns_get_types_that_spark_has(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table kinds (a bigint unsigned primary key, b tinyint(1), c double, "
        "d decimal(9, 2), e timestamp(6) null, f date, g time, h json, "
        "i enum('x', 'y'), j varbinary(4), k year)",
        "insert into kinds values (18446744073709551615, 1, 0.5, 1.25, '2026-01-01 00:00:00', "
        "'2026-01-02', '10:00:00', '{}', 'y', 'abcd', 2026)",
    )
    assert TableSource({"url": mariadb.url, "table": "kinds"}).schema() == (
        "`a` decimal(20, 0), `b` bigint, `c` double, `d` decimal(9, 2), `e` timestamp, `f` date, "
        "`g` string, `h` string, `i` string, `j` binary, `k` string"
    )


def test_every_value_reaches_spark(lab: Lab, mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table kinds_read "
        "(a bigint unsigned primary key, e timestamp(6) null, f date, g time, c double)",
        "set time_zone = '+03:00'",
        "insert into kinds_read values (18446744073709551615, '2026-01-01 03:00:00', '2026-01-02', "
        "'10:00:00', 0.25)",
    )
    read = lab.spark.read.format("penstock_table").options(url=mariadb.url, table="kinds_read")
    (row,) = read.load().selectExpr("a", "cast(e as string) as e", "f", "g", "c").collect()
    assert tuple(row) == (
        decimal.Decimal(18446744073709551615),
        "2026-01-01 00:00:00",
        dt.date(2026, 1, 2),
        "10:00:00",
        0.25,
    )


def test_rows_are_followed_by_a_timestamp_column(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table events (id int primary key, at datetime(6))",
        "insert into events values (1, '2026-01-01 00:00:00.000001')",
    )
    follower = TableFollower(mariadb.url, "events", "at")
    limit = follower.getDefaultReadLimit()
    first = follower.latestOffset(follower.initialOffset(), limit)
    ask(mariadb, "insert into events values (2, '2026-01-01 00:00:00.000002')")
    (part,) = follower.partitions(first, follower.latestOffset(first, limit))
    assert [row[0] for row in follower.read(part)] == [2]


def test_texts_that_the_collation_calls_equal_are_read_once_each(mariadb: MariaDb) -> None:
    """MariaDB's default collation ignores case and trailing spaces."""
    ask(mariadb, "create table named (id int primary key, name varchar(9))")
    following = Following(mariadb.url, "named", "name")
    for number, name in enumerate(["A", "a", "A ", "á", "B", "b"]):
        ask(mariadb, f"insert into named values ({number}, '{name}')")
        assert following.ids() == [number]
    assert following.ids() == []


def test_a_table_of_only_key_columns_is_upserted(mariadb: MariaDb) -> None:
    ask(mariadb, "create table seen (id int primary key)")
    upsert = Upsert(mariadb.url, "seen", ("id",), ("id",))
    upsert.write(iter([Row(id=1), Row(id=1), Row(id=2)]))
    assert ask(mariadb, "select id from seen order by id") == [(1,), (2,)]


def test_a_missing_table_is_an_error(mariadb: MariaDb) -> None:
    with pytest.raises(ConfigError, match="there is no table nothing"):
        TableSource({"url": mariadb.url, "table": "nothing"}).schema()


def test_four_byte_floats_are_not_followed_but_eight_byte_floats_are(mariadb: MariaDb) -> None:
    ask(mariadb, "create table floats (id int primary key, `short` float, `long` double)")
    with pytest.raises(ConfigError, match="option increasing: short is a FLOAT of four bytes"):
        TableFollower(mariadb.url, "floats", "short")
    following = Following(mariadb.url, "floats", "long")
    for number, value in enumerate(["0.1", "0.1", "0.10000000000001", "0.7", "1e300"]):
        ask(mariadb, f"insert into floats values ({number}, {value.replace('300', '3')}, {value})")
        assert following.ids() == [number]
    assert following.ids() == []
    (part,) = TableReader(mariadb.url, "floats").partitions()
    read = [row[2] for row in TableReader(mariadb.url, "floats").read(part)]
    assert read == [0.1, 0.1, 0.10000000000001, 0.7, 1e300]


@pytest.mark.parametrize(
    "column", ["flag bit(8)", "kind enum('z', 'a')", "tags set('z', 'a')", "t time"]
)
def test_columns_with_another_sort_order_are_not_followed(mariadb: MariaDb, column: str) -> None:
    ask(mariadb, f"create or replace table odd (id int primary key, {column})")
    name, kind, *_ = column.replace("(", " ").upper().split()
    with pytest.raises(ConfigError, match=f"option increasing: {name.lower()} is a {kind}, "):
        TableFollower(mariadb.url, "odd", name.lower())


def test_sets_and_times_beyond_a_day_are_read_as_text(mariadb: MariaDb) -> None:
    ask(
        mariadb,
        "create table lasting (id int primary key, tags set('x', 'y', 'z'), t time)",
        "insert into lasting values (1, 'z,x', '100:00:01')",
    )
    reader = TableReader(mariadb.url, "lasting")
    assert [*reader.read(*reader.partitions())] == [(1, "x,z", "100:00:01")]
