"""Avro values in pipelines, compared with Spark's own Avro reader as the oracle."""

import io
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from fastavro.utils import generate_many
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.avro.functions import from_avro as by_spark
from pyspark.sql.types import DataType, MapType

from clients.protocol import Record
from peers.penstock import PenstockBroker
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from penstock.spark.sql.interactive import names
from support.spark.flow_runs import records, run_flow
from support.spark.spark_rows import Lab, lab_beside

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


def logical(under: str, name: str) -> dict[str, str]:
    return {"type": under, "logicalType": name}


POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}]}
EVERY_TYPE: list[Any] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    ["null", "string"],
    ["int", "long"],
    ["null", "float", "double"],
    ["null", "int", "string", POINT],
    {"type": "array", "items": ["null", "Point"]},
    {"type": "map", "values": {"type": "array", "items": "long"}},
    {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
    {"type": "fixed", "name": "Hash", "size": 4},
    logical("int", "date"),
    logical("int", "time-millis"),
    logical("long", "time-micros"),
    logical("long", "timestamp-millis"),
    logical("long", "timestamp-micros"),
    logical("long", "local-timestamp-millis"),
    logical("long", "local-timestamp-micros"),
    {"type": "array", "items": logical("long", "timestamp-millis")},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {
        "type": "fixed",
        "name": "Price",
        "size": 8,
        "logicalType": "decimal",
        "precision": 12,
        "scale": 2,
    },
    logical("string", "uuid"),
]
SCHEMA = {
    "type": "record",
    "name": "shop.Everything",
    "fields": [{"name": f"f{number}", "type": each} for number, each in enumerate(EVERY_TYPE)],
}
DECIMALS = {"f23": 9, "f24": 12}
"""The precision of each decimal field."""
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "at", "type": logical("long", "timestamp-millis")},
    ],
}
ROWS = [
    {"id": 1, "customer": "ann", "at": 1_767_261_600_000},
    {"id": 2, "customer": None, "at": 1_767_265_200_000},
]


def encoded(schema: dict[str, Any], row: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), row)
    return out.getvalue()


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture
def orders(lab: Lab, topic: str) -> str:
    """A topic with two orders and two values that are not orders."""
    for name in (topic, f"{topic}-dead", f"{topic}-out"):
        lab.rdkafka.create_topic(name, 1)
    values = [*(encoded(ORDER, row) for row in ROWS), b"\x02", None]
    lab.rdkafka.produce(topic, [Record(each, b"k") for each in values])
    return topic


def as_text(column: Column, kind: DataType) -> Column:
    """Casts to text, since Python's dates end with the year 9999. Map entries are sorted: their
    order varies.
    """
    if isinstance(kind, MapType):
        column = F.array_sort(F.map_entries(column))
    return column.cast("string")


def test_every_type_reads_as_in_spark(lab: Lab, topic: str) -> None:
    random.seed(7)
    lab.rdkafka.create_topic(topic, 1)
    rows: list[Any] = [*generate_many(parse_schema(SCHEMA), 50)]
    for number, row in enumerate(rows):  # the generator ignores the decimals' precision
        for name, digits in DECIMALS.items():
            row[name] = Decimal(random.randrange(10**digits) * (-1) ** number).scaleb(-2)
    lab.rdkafka.produce(topic, [Record(encoded(SCHEMA, row)) for row in rows])
    schema = json.dumps(SCHEMA)
    options = {"subscribe": topic, "valueFormat": "avro", "valueSchema": schema}
    frame = lab.read("penstock", options).select(
        "fields", by_spark("value", schema, {"mode": "FAILFAST"}).alias("spark")
    )
    ours, theirs = frame.select("fields.*"), frame.select("spark.*")
    # Compared as text, because all of our columns are nullable, at every level.
    assert [each.dataType.simpleString() for each in ours.schema] == [
        each.dataType.simpleString() for each in theirs.schema
    ]
    by_column = [
        F.struct(
            as_text(F.col(f"fields.{each.name}"), each.dataType).alias("ours"),
            as_text(F.col(f"spark.{each.name}"), each.dataType).alias("spark"),
        ).alias(each.name)
        for each in ours.schema
    ]
    found = frame.select(*by_column).collect()
    assert len(found) == 50
    for name in ours.columns:
        assert [row[name]["ours"] for row in found] == [row[name]["spark"] for row in found], name


def test_bad_values_become_dead_letters(lab: Lab, orders: str, tmp_path: Path) -> None:
    flow = FlowSpec(
        name="avro",
        source=From(topic=orders, format="avro", schema=json.dumps(ORDER)),
        sql="select id, customer, date(at) as day from {source} where id > 0",
        to=To(topic=f"{orders}-out", key="id"),
        dead_letters=f"{orders}-dead",
    )
    run_flow(lab, flow, tmp_path)
    assert [
        (each.key, json.loads(each.value or b"")) for each in records(lab, f"{orders}-out")
    ] == [
        (b"1", {"id": 1, "customer": "ann", "day": "2026-01-01"}),
        (b"2", {"id": 2, "day": "2026-01-01"}),
    ]
    dead = {
        each.value: dict(each.headers)["penstock-error"] for each in records(lab, f"{orders}-dead")
    }
    assert dead == {
        b"\x02": b"the value is not avro of its schema",
        None: b"no value, where avro was expected",
    }


def test_without_a_dead_letter_topic_a_bad_value_ends_the_flow(
    lab: Lab, orders: str, tmp_path: Path
) -> None:
    flow = FlowSpec(
        name="strict",
        source=From(topic=orders, format="avro", schema=json.dumps(ORDER)),
        to=To(parquet="lake"),
    )
    with pytest.raises(StreamingQueryException, match="the value is not avro of its schema"):
        run_flow(lab, flow, tmp_path)


def test_a_query_gets_columns_and_an_error_column(lab: Lab, orders: str) -> None:
    known: dict[str, Any] = names(lab.spark, lab.penstock.bootstrap)
    table = known["topic"](orders, "avro", json.dumps(ORDER))
    rows = table.orderBy("offset").select("id", "customer", "offset", "_error").collect()
    assert [tuple(each) for each in rows] == [
        (1, "ann", 0, None),
        (2, None, 1, None),
        (None, None, 2, "the value is not avro of its schema"),
        (None, None, 3, "no value, where avro was expected"),
    ]
