"""Flows without code, and SQL queries: with a broker, files and a database."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from clients.protocol import Record
from peers.penstock import PenstockBroker
from penstock.spark.pipeline.access_log import access_log_fields
from penstock.spark.pipeline.flow import FlowContext, start_flow
from penstock.spark.pipeline.flow_spec import Expect, FlowSpec, From, To
from penstock.spark.pipeline.progress import progress
from penstock.spark.pipeline.record import as_records
from penstock.spark.pipeline.value_format import ValueFormat, parsed
from penstock.spark.sql.interactive import names
from penstock.spark.sql.topic_view import mentioned
from support.spark.flow_runs import records, run_flow
from support.spark.spark_rows import Lab, lab_beside
from support.transactions.stable_offsets import wait_for_markers

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
ORDERS = [
    {"id": 1, "customer": "ann", "total": 10.0, "at": "2026-01-01T10:00:00Z"},
    {"id": 2, "customer": None, "total": 5.0, "at": "2026-01-01T11:00:00Z"},
    {"id": 3, "customer": "bob", "total": -1.0, "at": "2026-01-02T10:00:00Z"},
    {"id": 1, "customer": "eve", "total": 7.0, "at": "2026-01-02T12:00:00Z"},
]
SCHEMA = "id bigint, customer string, total double, at timestamp"


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


def orders(lab: Lab, topic: str) -> None:
    lab.rdkafka.create_topic(topic, 1)
    lab.rdkafka.create_topic(f"{topic}-dead", 1)
    values = [*(json.dumps(each).encode() for each in ORDERS), b"not json", None]
    headers = (("trace", b"7"), ("penstock-attempt", b"3"))
    lab.rdkafka.produce(topic, [Record(each, b"k", headers) for each in values])


def test_a_topic_becomes_files_by_day_and_bad_rows_become_dead_letters(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    orders(lab, topic)
    flow = FlowSpec(
        name="lake",
        source=From(topic=topic, format="json", schema=SCHEMA, group="lakes"),
        expect=[Expect("customer", "customer is not null"), Expect("total", "total >= 0")],
        sql="select *, date(at) as day from {source}",
        to=To(parquet="lake", partition_by=["day"]),
        dead_letters=f"{topic}-dead",
    )
    run_flow(lab, flow, tmp_path)
    run_flow(lab, flow, tmp_path)  # nothing is read twice
    found = lab.spark.read.parquet(str(tmp_path / "lake")).orderBy("day").collect()
    assert [(row["id"], row["customer"], str(row["day"])) for row in found] == [
        (1, "ann", "2026-01-01"),
        (1, "eve", "2026-01-02"),
    ]
    assert "_record" not in found[0]
    assert sorted(each.name for each in (tmp_path / "lake").glob("day=*")) == [
        "day=2026-01-01",
        "day=2026-01-02",
    ]
    dead = {each.value: dict(each.headers) for each in records(lab, f"{topic}-dead")}
    assert len(dead) == 4
    assert b"'customer' is broken" in dead[json.dumps(ORDERS[1]).encode()]["penstock-error"]
    assert b"'total' is broken" in dead[json.dumps(ORDERS[2]).encode()]["penstock-error"]
    unread = dead[b"not json"]
    assert unread.pop("penstock-error").startswith(b"the value is not json")
    assert unread == {
        "trace": b"7",
        "penstock-source": b"spark:lake",
        "penstock-attempt": b"1",
        "penstock-origin-topic": topic.encode(),
        "penstock-origin-partition": b"0",
        "penstock-origin-offset": b"4",
        "penstock-origin-group": b"lakes",
    }
    assert dead[None]["penstock-error"] == b"no value, where json was expected"


def test_rows_of_aborted_transactions_do_not_count(lab: Lab, topic: str, tmp_path: Path) -> None:
    """An exactly-once sink aborts a transaction before it writes the rows again."""
    lab.rdkafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": lab.penstock.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"a row", partition=0)
        assert producer.flush(60) == 0
        end(60)
    wait_for_markers(lab.penstock.bootstrap, topic, 1)
    flow = FlowSpec(name="once", source=From(topic=topic, format="text"), to=To(parquet="lake"))
    run_flow(lab, flow, tmp_path)
    found = lab.spark.read.parquet(str(tmp_path / "lake")).collect()
    assert [row["line"] for row in found] == ["a row"]
    assert names(lab.spark, lab.penstock.bootstrap)["topic"](topic).count() == 1  # type: ignore[operator]


def test_without_a_dead_letter_topic_a_bad_value_ends_the_flow(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    orders(lab, topic)
    flow = FlowSpec(
        name="strict",
        source=From(topic=topic, format="json", schema=SCHEMA),
        to=To(parquet="lake"),
    )
    with pytest.raises(StreamingQueryException, match="the value is not json"):
        run_flow(lab, flow, tmp_path)


def test_an_expectation_can_end_the_flow(lab: Lab, topic: str, tmp_path: Path) -> None:
    orders(lab, topic)
    flow = FlowSpec(
        name="strict",
        source=From(topic=topic, format="json", schema=SCHEMA),
        expect=[Expect("customer", "customer is not null", "fail")],
        to=To(parquet="lake"),
        dead_letters=f"{topic}-dead",
    )
    with pytest.raises(StreamingQueryException, match="'customer' is broken"):
        run_flow(lab, flow, tmp_path)


def test_lines_of_a_rotating_file_become_records_exactly_once(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic, 1)
    log = tmp_path / "access.log"
    log.write_text("one\ntwo\npart")
    flow = FlowSpec(name="in", source=From(files="access.log"), to=To(topic=topic, key="file"))
    run_flow(lab, flow, tmp_path)
    with log.open("a") as file:
        file.write("ial\n")
    log.rename(tmp_path / "access.log.1")
    log.write_text("three\n")
    run_flow(lab, flow, tmp_path)
    found = records(lab, topic)
    assert sorted(each.value or b"" for each in found) == [b"one", b"partial", b"three", b"two"]
    assert found[0].key == str(log).encode()


def test_lines_of_files_are_parsed_by_a_format_and_bad_ones_become_dead_letters(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-dead"):
        lab.rdkafka.create_topic(name, 1)
    lines = [*map(json.dumps, ORDERS[:3]), "not json"]
    (tmp_path / "orders.jsonl").write_text("".join(f"{each}\n" for each in lines))
    flow = FlowSpec(
        name="lines",
        source=From(files="orders.jsonl", format="json", schema=SCHEMA),
        expect=[Expect("customer", "customer is not null")],
        to=To(topic=topic, key="id"),
        dead_letters=f"{topic}-dead",
    )
    run_flow(lab, flow, tmp_path)
    assert [each.key for each in records(lab, topic)] == [b"1", b"3"]
    dead = {each.value: dict(each.headers) for each in records(lab, f"{topic}-dead")}
    assert set(dead) == {lines[1].encode(), b"not json"}
    assert dead[b"not json"]["penstock-origin-file"] == str(tmp_path / "orders.jsonl").encode()
    position = sum(len(each) + 1 for each in lines[:3])
    assert dead[b"not json"]["penstock-origin-position"] == b"%d" % position


def test_dead_letters_affect_neither_the_flows_group_nor_its_counts(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    orders(lab, topic)
    flow = FlowSpec(
        name="counted",
        source=From(topic=topic, format="json", schema=SCHEMA, group=f"group-{topic}"),
        expect=[Expect("customer", "customer is not null"), Expect("total", "total >= 0")],
        to=To(parquet="lake"),
        dead_letters=f"{topic}-dead",
    )
    place = FlowContext(
        lab.penstock.bootstrap, tmp_path, (tmp_path / "s").as_uri(), {"availableNow": True}
    )
    queries = start_flow(lab.spark, flow, place)
    for query in queries:
        assert query.awaitTermination(90)
    broken: dict[str, list[dict[str, int]]] = {}
    for query in queries:
        reported = [progress(json.loads(each.json)).broken for each in query.recentProgress]
        broken[query.name] = [each for each in reported if any(each.values())]
    assert broken.pop("counted") == [{"customer": 1, "total": 1}]
    assert not any(broken.values()), "the same rows are not counted again"


def test_a_topic_is_upserted_and_rejected_rows_become_dead_letters(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    orders(lab, topic)
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute(
        "create table o (id integer primary key, customer text not null, total real)"
    )
    connection.commit()
    flow = FlowSpec(
        name="upsert",
        source=From(topic=topic, format="json", schema=SCHEMA, group=f"group-{topic}"),
        sql="select id, customer, total from {source}",
        to=To(table="o", url="sqlite:///shop.db", key="id"),
        dead_letters=f"{topic}-dead",
    )
    run_flow(lab, flow, tmp_path)
    rows = connection.execute("select * from o order by id").fetchall()
    connection.close()
    assert rows == [(1, "eve", 7.0), (3, "bob", -1.0)]
    reasons = [dict(each.headers)["penstock-error"] for each in records(lab, f"{topic}-dead")]
    assert sum(b"NOT NULL constraint failed" in each for each in reasons) == 1
    assert len(reasons) == 3


def test_one_bad_record_does_not_make_a_json_topic_text(lab: Lab, topic: str) -> None:
    lab.rdkafka.create_topic(topic, 1)
    values = [*(json.dumps(each).encode() for each in ORDERS), b"not json", b"{broken"]
    lab.rdkafka.produce(topic, [Record(each) for each in values])
    table = names(lab.spark, lab.penstock.bootstrap)["topic"](topic)  # type: ignore[operator]
    found = table.orderBy("offset").collect()
    assert [row["id"] for row in found] == [1, 2, 3, 1, None, None]
    assert [row["_error"] is None for row in found] == [True] * 4 + [False] * 2


def test_a_topic_becomes_a_table_by_its_values_format(lab: Lab, topic: str) -> None:
    lab.rdkafka.create_topic(topic, 1)
    values = [json.dumps(each).encode() for each in ORDERS]
    lab.rdkafka.produce(topic, [Record(each, b"k") for each in values])
    known: dict[str, Any] = names(lab.spark, lab.penstock.bootstrap)
    table = known["topic"](topic)
    assert table.columns[:4] == ["at", "customer", "id", "total"]
    table.createOrReplaceTempView(f"`{topic}`")
    asked = (
        f"select id, sum(total) as s, max(offset) as o, max(key) as k from `{topic}` group by id"
    )
    found = lab.spark.sql(f"{asked} order by id").collect()
    assert [tuple(each) for each in found] == [
        (1, 17.0, 3, "k"),
        (2, 5.0, 1, "k"),
        (3, -1.0, 2, "k"),
    ]


def test_a_value_of_two_json_objects_is_unreadable(lab: Lab) -> None:
    """Spark reads the first one, and the rest of the value would be lost."""
    one = '{"id": 1}'
    readable = [
        one,
        f" {one} \n",
        f"{one},",  # a line of an array
        f"{one}\0",
        '{"id": 1, "s": "} {"}',
        '{"id": 1, "s": "} {"},\n\0',
        "{'id': 1, 's': {'a': '} x'}}",
        '{"id": 1, "s": [{"a": {}}, {"a": NaN, "b": "\\ud800"}]}',
    ]
    followed = [f"{one}{one}", f"{one}\n{one}\n", f"{one}, {one}", f"{one}\0{one}", f"{one} x"]
    values = [*readable, *followed, f'{{"id": 1, "s": [{{}},{{}}]}}{one}', f"[{one}]"]
    rows = lab.spark.createDataFrame([(each.encode(),) for each in values], "value binary")
    read = parsed(rows, ValueFormat("json", "id int"), ["value"]).select("_record.value", "_error")
    found = {bytes(row["value"]).decode() for row in read.collect() if row["_error"] is None}
    assert found == {*readable}


def test_keys_differ_if_their_times_differ_by_a_microsecond(lab: Lab) -> None:
    rows = lab.spark.sql(
        "select 1 as id, timestamp_micros(at) as at, cast(timestamp_micros(at) as timestamp_ntz) "
        "as local from values (1500), (1501) as t (at)"
    )
    keys = {row["key"] for row in as_records(rows, ["id", "at"]).collect()}
    assert keys == {f'{{"id":1,"at":"1970-01-01T00:00:00.00150{n}Z"}}' for n in (0, 1)}
    (local,) = as_records(rows.limit(1), []).collect()
    assert '"local":"1970-01-01T00:00:00.001500"' in local["value"]


def test_a_line_with_a_very_long_agent_is_parsed(lab: Lab) -> None:
    agent = 'x\\"' * 20_000
    line = f'::1 - - [01/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "{agent}" 0.5'
    rows = lab.spark.createDataFrame([(line,)], "line string")
    (found,) = rows.select(access_log_fields(F.col("line")).alias("f")).select("f.*").collect()
    assert (found["agent"], found["seconds"]) == (agent, 0.5)


def test_the_topics_in_a_query_are_found() -> None:
    topics = ["a", "a-b", "logs.x", "other"]
    assert mentioned("select * from a", topics) == ["a"]
    assert mentioned("select * from `a-b` join `logs.x`", topics) == ["a-b", "logs.x"]
