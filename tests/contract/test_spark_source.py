"""The source `penstock` in Spark, compared with Spark's own `kafka` format: equal rows and
offsets.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from pyspark.errors import AnalysisException, StreamingQueryException

from clients.protocol import CODECS, Record
from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.spark.spark_rows import Lab, into_table, lab_beside, rows, run_to_end

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
FORMATS = ("penstock", "kafka")
AT_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture(scope="module")
def mixed(lab: Lab) -> str:
    """Three partitions with every codec, nulls, headers, large and empty values."""
    topic = "spark-mixed"
    lab.rdkafka.create_topic(topic, 3)
    for index, codec in enumerate(CODECS):
        records = [
            Record(
                None if n % 11 == 0 else b"value %d " % n * (n % 40),
                None if n % 7 == 0 else b"key-%d" % n,
                (("a", b"1"), ("ä", b"\xff"), ("a", b"")) if n % 3 == 0 else (),
                AT_MS + index * 1000 + n,
                n % 3,
            )
            for n in range(200)
        ]
        lab.rdkafka.produce(topic, records, codec=codec)
    return topic


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "spark-mixed", "includeHeaders": "true"},
        {"subscribePattern": "spark-mi.*"},
        {
            "assign": '{"spark-mixed": [0, 2]}',
            "startingOffsets": '{"spark-mixed": {"0": 5, "2": -2}}',
        },
        {
            "subscribe": "spark-mixed",
            "startingTimestamp": AT_MS + 2000,
            "endingTimestamp": AT_MS + 3000,
        },
        {
            "assign": '{"spark-mixed": [1]}',
            "startingOffsetsByTimestamp": json.dumps({"spark-mixed": {"1": AT_MS + 500}}),
            "startingOffsetsByTimestampStrategy": "latest",
            "endingOffsets": '{"spark-mixed": {"1": -1}}',
        },
        {
            "subscribe": "spark-mixed",
            "minPartitions": "7",
            "kafka.isolation.level": "read_committed",
        },
    ],
    ids=["headers", "pattern", "assign", "times", "times by partition", "min partitions"],
)
def test_a_batch_has_the_rows_of_the_kafka_format(
    lab: Lab, mixed: str, options: dict[str, Any]
) -> None:
    ours, theirs = (rows(lab.read(each, options)) for each in FORMATS)
    assert ours == theirs
    assert ours
    assert {row[0] for row in ours} == {mixed}


def test_schemas_are_the_same(lab: Lab, mixed: str) -> None:
    for headers in ("true", "false"):
        options = {"subscribe": mixed, "includeHeaders": headers}
        ours, theirs = (lab.read(each, options).schema for each in FORMATS)
        assert ours == theirs


def test_ranges_are_divided_for_more_tasks(lab: Lab, mixed: str) -> None:
    for options, tasks in [
        ({}, 3),
        ({"minPartitions": 10}, 10),
        ({"maxRecordsPerPartition": 50}, 21),
    ]:
        frame = lab.read("penstock", {"subscribe": mixed, **options})
        assert frame.rdd.getNumPartitions() == tasks


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "t", "startingOffset": "latest"}, "did you mean startingOffsets?"),
        ({"subscribe": "t", "kafka.isolaton.level": "x"}, "did you mean kafka.isolation.level?"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "cannot be latest in a batch read"),
        ({"subscribe": "t", "kafka.security.protocol": "SASL_SSL"}, "use one of PLAIN"),
        ({"subscribe": "no-such-topic"}, "topic no-such-topic does not exist"),
    ],
    ids=["misspelt", "misspelt client setting", "impossible", "security", "missing topic"],
)
def test_invalid_options_are_errors(lab: Lab, options: dict[str, str], words: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        lab.read("penstock", options).count()
    assert words in str(caught.value)


def test_filters_are_pushed_down(lab: Lab, mixed: str) -> None:
    frame = lab.read("penstock", {"subscribe": mixed})
    condition = (
        "partition = 1 and offset >= 10 and offset < 200 and value is not null "
        f"and timestamp >= timestamp_millis({AT_MS + 1000}) "
        f"and timestamp < timestamp_millis({AT_MS + 1100})"
    )
    expected = rows(frame.where(condition))
    lab.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        narrowed = frame.where(condition)
        assert rows(narrowed) == expected
        assert rows(frame.where("topic = 'other'")) == []
        assert narrowed.rdd.getNumPartitions() == 1
    finally:
        lab.spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert 0 < len(expected) < 100


def committed(lab: Lab, group: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": lab.penstock.bootstrap, "group.id": group})
    try:
        places = [Position(topic, n) for n in range(partitions)]
        return [each.offset for each in consumer.committed(places, timeout=20)]
    finally:
        consumer.close()


def test_a_stream_continues_from_its_checkpoint_and_its_lag_ends_at_zero(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic, 2)
    lab.numbers(topic, 250, 0)
    lab.numbers(topic, 50, 1)
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 100,
        "groupId": f"group-{topic}",
    }
    frame = lab.stream("penstock", options)
    first = run_to_end(frame, tmp_path)
    assert [each["numInputRows"] for each in first.recentProgress if each["numInputRows"]] == [
        99,
        99,
        99,
        3,
    ]
    assert committed(lab, f"group-{topic}", topic, 2) == [250, 50]
    # Partitions that were added meanwhile are read from their first record.
    lab.rdkafka.create_partitions(topic, 3)
    wait_until(lambda: len(lab.rdkafka.partitions(topic)) == 3, 20, "the partition to be known")
    lab.numbers(topic, 10, 0)
    lab.numbers(topic, 5, 2)
    run_to_end(frame, tmp_path)
    places = {0: 260, 1: 50, 2: 5}
    assert lab.written(tmp_path) == [(p, n) for p, end in places.items() for n in range(end)]
    assert committed(lab, f"group-{topic}", topic, 3) == [260, 50, 5]
    offsets = (tmp_path / "checkpoint" / "offsets" / "4").read_text().splitlines()[-1]
    assert json.loads(offsets) == {topic: {"0": 260, "1": 50, "2": 5}}


@pytest.mark.parametrize(("before", "after"), [FORMATS, FORMATS[::-1]])
def test_a_job_migrates_by_changing_the_format_name(
    lab: Lab,
    topic: str,
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    lab.rdkafka.create_topic(topic, 2)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    for index, source in enumerate((before, after)):
        lab.numbers(topic, 20, index)
        run_to_end(lab.stream(source, options), tmp_path)
    assert lab.written(tmp_path) == [(p, n) for p in (0, 1) for n in range(20)]


def test_a_running_stream_finds_new_partitions_and_topics(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(f"{topic}-a")
    lab.numbers(f"{topic}-a", 10)
    options = {"subscribePattern": f"{topic}-.*", "startingOffsets": "earliest"}
    query = into_table(lab.stream("penstock", options), tmp_path, "found")
    try:
        lab.wait_for_rows("found", 10)
        lab.rdkafka.create_partitions(f"{topic}-a", 2)
        lab.rdkafka.create_topic(f"{topic}-b")
        wait_until(lambda: len(lab.rdkafka.partitions(f"{topic}-a")) == 2, 20, "the new partition")
        lab.numbers(f"{topic}-a", 5, 1)
        lab.numbers(f"{topic}-b", 7)
        lab.wait_for_rows("found", 22)
    finally:
        query.stop()


def test_a_stream_waits_for_enough_records_but_not_at_its_end(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic)
    lab.numbers(topic, 20)
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 50}
    query = into_table(
        lab.stream("penstock", {**options, "maxTriggerDelay": "1h"}), tmp_path, "enough"
    )
    try:
        lab.wait_for_rows("enough", 20)  # the first batch does not wait
        lab.numbers(topic, 30)
        lab.numbers(topic, 30)
        lab.wait_for_rows("enough", 80)
        batches = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        assert all(each >= 50 for each in batches[1:])
    finally:
        query.stop()
    frame = lab.stream("penstock", {**options, "maxOffsetsPerTrigger": 60})
    run_to_end(frame, tmp_path / "again")
    assert len(lab.written(tmp_path / "again")) == 80


def test_a_recreated_topic_fails_a_stream_or_is_read_from_its_start(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic)
    lab.numbers(topic, 20)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    run_to_end(lab.stream("penstock", options), tmp_path)
    lab.rdkafka.delete_topic(topic)
    wait_until(lambda: topic not in lab.rdkafka.topics(), 20, "the topic to be gone")
    lab.rdkafka.create_topic(topic)
    wait_until(lambda: topic in lab.rdkafka.topics(), 20, "the topic to be back")
    lab.numbers(topic, 5)
    with pytest.raises(StreamingQueryException, match=r"recreated.*failOnDataLoss"):
        run_to_end(lab.stream("penstock", options), tmp_path)
    lenient = {**options, "failOnDataLoss": "false"}
    run_to_end(lab.stream("penstock", lenient), tmp_path)
    assert lab.written(tmp_path) == sorted([(0, n) for n in (*range(20), *range(5))])


def test_a_topic_deleted_during_a_read_ends_the_stream_or_is_left_out(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    names = [f"{topic}-{n}" for n in range(2)]
    for name in names:
        lab.rdkafka.create_topic(name)
        lab.numbers(name, 5)
    queries = {}
    try:
        for fails in ("true", "false"):
            options = {
                "subscribe": ",".join(names),
                "startingOffsets": "earliest",
                "failOnDataLoss": fails,
                # A topic counts as deleted only after this time; its default is the test's own.
                "kafka.default.api.timeout.ms": "10000",
            }
            frame = lab.stream("penstock", options)
            queries[fails] = into_table(frame, tmp_path, f"deleted_{fails}")
            # One after the other: on a busy machine Spark gives up on workers that start at the
            # same time.
            lab.wait_for_rows(f"deleted_{fails}", 10)
        lab.rdkafka.delete_topic(names[0])
        with pytest.raises(
            StreamingQueryException, match=f"topic {names[0]} does not exist any more"
        ):
            queries["true"].awaitTermination(60)
        lab.numbers(names[1], 5)
        lab.wait_for_rows("deleted_false", 15)
    finally:
        for query in queries.values():
            query.stop()
