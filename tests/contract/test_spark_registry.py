"""Values with schema ids in Spark: read, written, and in a flow whose schema changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from clients.protocol import Record
from peers.penstock import PenstockBroker
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from penstock.testing.registry import EmbeddedRegistry
from support.spark.flow_runs import records, run_flow
from support.spark.spark_rows import Lab, lab_beside

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
ORDER_2 = {
    **ORDER,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
    ],
}


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture(scope="module")
def url(lab: Lab) -> Iterator[str]:
    with EmbeddedRegistry(lab.penstock.bootstrap) as registry:
        yield registry.url


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


def value(client: SchemaRegistryClient, topic: str, schema: object, row: object) -> bytes:
    context = SerializationContext(topic, MessageField.VALUE)
    made: bytes | None = AvroSerializer(client, json.dumps(schema))(row, context)
    assert made is not None
    return made


@pytest.mark.row("A020")
def test_a_flow_continues_when_the_schema_changes(
    lab: Lab, topic: str, url: str, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-dead", f"{topic}-out"):
        lab.rdkafka.create_topic(name, 1)
    flow = FlowSpec(
        name="orders",
        source=From(topic=topic, format="confluent-avro", options={"schema.registry.url": url}),
        sql="select * from {source}",
        to=To(topic=f"{topic}-out", key="id"),
        dead_letters=f"{topic}-dead",
    )
    old = value(client, topic, ORDER, {"id": 1})
    unknown = b"\x00\x00\x0f\xff\xff\x02"
    lab.rdkafka.produce(topic, [Record(each, b"k") for each in (old, unknown, b"plain")])
    run_flow(lab, flow, tmp_path)
    new = value(client, topic, ORDER_2, {"id": 1 << 40, "customer": "ann"})
    lab.rdkafka.produce(topic, [Record(each, b"k") for each in (new, old)])
    run_flow(lab, flow, tmp_path)
    assert [json.loads(each.value or b"") for each in records(lab, f"{topic}-out")] == [
        {"id": 1},
        {"id": 1 << 40, "customer": "ann"},
        {"id": 1},
    ]
    dead = {each.value: dict(each.headers) for each in records(lab, f"{topic}-dead")}
    assert dead.keys() == {unknown, b"plain"}
    assert dead[unknown]["penstock-error"] == b"the value is not confluent-avro of its schema"


@pytest.mark.parametrize("name", ["confluent-avro", "confluent-json", "confluent-protobuf"])
def test_spark_reads_the_values_that_it_wrote(lab: Lab, topic: str, url: str, name: str) -> None:
    schemas = {
        "confluent-avro": json.dumps(ORDER_2),
        "confluent-json": json.dumps(
            {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "customer": {"type": "string"}},
            }
        ),
        "confluent-protobuf": (
            'syntax = "proto3"; message Order { int64 id = 1; optional string customer = 2; }'
        ),
    }
    lab.rdkafka.create_topic(topic, 1)
    rows = lab.spark.createDataFrame([(1, "ann"), (2, None)], "id bigint, customer string")
    options = {"valueFormat": name, "schema.registry.url": url}
    (
        rows.coalesce(1)
        .select(F.struct("*").alias("value"))
        .write.format("penstock")
        .option("kafka.bootstrap.servers", lab.penstock.bootstrap)
        .options(topic=topic, valueSchema=schemas[name], **options)
        .mode("append")
        .save()
    )
    found = lab.read("penstock", {"subscribe": topic, **options}).select("fields.*")
    assert sorted(tuple(each) for each in found.collect()) == [(1, "ann"), (2, None)]


def test_confluents_client_reads_what_spark_writes(
    lab: Lab, topic: str, url: str, client: SchemaRegistryClient
) -> None:
    lab.rdkafka.create_topic(topic, 1)
    value(client, topic, ORDER_2, {"id": 1})  # registers the schema
    writer = (
        lab.spark.range(3, 4)
        .select(F.struct(F.col("id"), F.lit("bo").alias("customer")).alias("value"))
        .write.format("penstock")
        .option("kafka.bootstrap.servers", lab.penstock.bootstrap)
        .options(topic=topic, valueFormat="confluent-avro", **{"schema.registry.url": url})
        .mode("append")
    )
    writer.save()
    (record,) = records(lab, topic)
    context = SerializationContext(topic, MessageField.VALUE)
    assert AvroDeserializer(client)(record.value, context) == {"id": 3, "customer": "bo"}
    with pytest.raises(AnalysisException, match="needs a struct"):
        lab.spark.range(1).selectExpr("'x' as value").write.format("penstock").option(
            "kafka.bootstrap.servers", lab.penstock.bootstrap
        ).options(topic=topic, valueFormat="confluent-avro", **{"schema.registry.url": url}).mode(
            "append"
        ).save()
