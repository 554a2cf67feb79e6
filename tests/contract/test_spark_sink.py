"""Spark writes to topics with format `penstock`; other clients read the records."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from peers.penstock import PenstockBroker
from peers.spark_session import spark_session

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with PenstockBroker() as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    return make_topic(bootstrap, request.node.name.replace("[", "-").replace("]", "")[:60])


def make_topic(bootstrap: str, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, 4)])[name].result(30)
    return name


def messages(bootstrap: str, topic: str) -> list[Message]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "x", "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, each, 0) for each in range(4)])
    found: list[Message] = []
    ended, deadline = 0, time.monotonic() + 20
    while ended < 4 and time.monotonic() < deadline:
        message = reader.poll(1)
        if message is not None and message.error():
            ended += 1
        elif message is not None:
            found.append(message)
    reader.close()
    assert ended == 4
    return found


def save(rows: DataFrame, bootstrap: str, **options: str) -> None:
    writer = rows.write.format("penstock").mode("append")
    writer.option("kafka.bootstrap.servers", bootstrap).options(**options).save()


ROWS = (
    "key string, value binary, topic string, partition int, "
    "headers array<struct<key: string, value: binary>>, timestamp timestamp"
)


def test_all_columns_are_written(spark: SparkSession, bootstrap: str, topic: str) -> None:
    time_of = datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)
    rows = [
        ("k", b"v", topic, 3, [("a", b"1"), ("a", None)], time_of),
        (None, b"", topic, 1, [], time_of),
        ("tombstone", None, topic, None, None, time_of),
    ]
    save(spark.createDataFrame(rows, ROWS), bootstrap, includeTimestamp="true")
    found = {message.key(): message for message in messages(bootstrap, topic)}
    assert len(found) == 3
    first, second, third = found[b"k"], found[None], found[b"tombstone"]
    assert (first.value(), first.partition()) == (b"v", 3)
    assert first.headers() == [("a", b"1"), ("a", None)]
    assert first.timestamp()[1] == int(time_of.timestamp() * 1000)
    assert (second.value(), second.partition(), second.headers()) == (b"", 1, None)
    assert third.value() is None


def test_rows_keep_their_order_by_key(spark: SparkSession, bootstrap: str, topic: str) -> None:
    count = 50_000
    rows = spark.range(count, numPartitions=1).select(
        (F.col("id") % 100).cast("string").alias("key"), F.col("id").cast("string").alias("value")
    )
    save(rows, bootstrap, topic=topic, **{"kafka.compression.type": "zstd"})
    found = messages(bootstrap, topic)
    assert sorted(int(message.value() or b"") for message in found) == list(range(count))
    by_key: dict[bytes, list[int]] = {}
    for message in found:
        by_key.setdefault(message.key() or b"", []).append(int(message.value() or b""))
    assert len(by_key) == 100
    assert all(values == sorted(values) for values in by_key.values())


def test_a_stream_is_written(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    spark.range(500).write.json(str(tmp_path / "in"))
    rows = spark.readStream.schema("id bigint").json(str(tmp_path / "in"))
    query = (
        rows.select(F.col("id").cast("string").alias("value"))
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = sorted(int(message.value() or b"") for message in messages(bootstrap, topic))
    assert found == list(range(500))


def test_a_topic_is_copied_exactly_once_with_its_partitions(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Writing each source partition to the same target partition needs no shuffle; the copy resumes
    where it stopped.
    """
    copy = make_topic(bootstrap, f"{topic}-copy")
    rows = spark.range(2_000).select(F.col("id").cast("string").alias("value"))

    def copied() -> list[tuple[int, bytes]]:
        read = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
        read = read.option("subscribe", topic).option("startingOffsets", "earliest")
        query = (
            read.option("maxOffsetsPerTrigger", 1_000)
            .load()
            .writeStream.format("penstock")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", copy)
            .option("transactional", "true")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return placed(bootstrap, copy)

    save(rows, bootstrap, topic=topic)
    assert copied() == placed(bootstrap, topic)
    save(rows, bootstrap, topic=topic)
    assert copied() == placed(bootstrap, topic)
    assert len(placed(bootstrap, copy)) == 4_000


def test_a_query_without_a_marker_writes_if_the_option_says_so(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "transactionalId": topic}

    def run(**options: str) -> None:
        rows = spark.readStream.schema("id bigint").json(str(tmp_path / "in"))
        query = (
            rows.where("id > 0")
            .coalesce(1)
            .select(F.col("id").cast("string").alias("value"))
            .writeStream.format("penstock")
            .options(**given, **options, transactional="true")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}}}')
        run()  # the first micro-batch has no rows, but still leaves a marker
    admin.delete_consumer_groups([topic])[topic].result(30)
    (tmp_path / "in" / "2.json").write_text('{"id": 2}')
    for _ in range(2):
        with pytest.raises(PySparkException, match="reached micro-batch 2, but left no marker"):
            run()
    run(ifMarkerIsMissing="write")
    assert sorted(value for _, value in placed(bootstrap, topic)) == [b"1", b"2"]


def placed(bootstrap: str, topic: str) -> list[tuple[int, bytes]]:
    """Values with their partitions, ordered by partition."""
    found = [(each.partition() or 0, each.value() or b"") for each in messages(bootstrap, topic)]
    return sorted(found, key=lambda each: each[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "option topic is missing, and the rows have no column topic"),
        ({"tpoic": "x"}, "unknown option tpoic; did you mean topic?"),
        ({"topic": "x", "kafka.key.serializer": "x"}, "keys are written as they are"),
        ({"topic": "not/a/name"}, "topic not/a/name: INVALID_TOPIC_EXCEPTION"),
    ],
)
def test_errors_say_what_is_wrong(
    spark: SparkSession, bootstrap: str, options: dict[str, str], words: str
) -> None:
    rows = spark.range(3).select(F.col("id").cast("string").alias("value"))
    with pytest.raises(PySparkException) as refused:
        save(rows, bootstrap, **options)
    assert words in str(refused.value)


def test_a_topic_is_not_overwritten(spark: SparkSession, bootstrap: str, topic: str) -> None:
    rows = spark.range(3).select(F.col("id").cast("string").alias("value"))
    writer = rows.write.format("penstock").mode("overwrite").option("topic", topic)
    with pytest.raises(PySparkException, match="a topic cannot be overwritten: use mode append"):
        writer.option("kafka.bootstrap.servers", bootstrap).save()


def test_two_writers_of_a_partition_fail_the_stream_with_advice(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    spark.range(4_000).repartition(4).write.json(str(tmp_path / "in"))
    rows = spark.readStream.schema("id bigint").json(str(tmp_path / "in")).repartition(4)
    query = (
        rows.select(F.lit("one key").alias("key"), F.col("id").cast("string").alias("value"))
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("transactional", "true")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(PySparkException) as refused:
        query.awaitTermination()
    assert "repartitionById" in str(refused.value)
