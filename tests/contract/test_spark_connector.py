"""Spark's own connector, unmodified, against our broker: batch, streaming, real-time mode."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.protocol import Record
from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.spark.spark_rows import Lab, lab_beside, rows, run_to_end

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    # Real-time mode needs a task slot for each partition of the source, all at the same time.
    with lab_beside(penstock, tmp_path_factory.mktemp("spark"), cores=4) as found:
        yield found


def test_a_batch_is_written_and_read_back(lab: Lab, topic: str) -> None:
    lab.rdkafka.create_topic(topic, 3)
    frame = lab.spark.range(500).selectExpr(
        "cast(id as string) as key", "concat('v', id) as value",
        "array(named_struct('key', 'h', 'value', cast('x' as binary))) as headers",
    )  # fmt: skip
    target = {"kafka.bootstrap.servers": lab.penstock.bootstrap, "topic": topic}
    frame.write.format("kafka").options(**target, includeHeaders="true").save()
    found = rows(lab.read("kafka", {"subscribe": topic, "includeHeaders": "true"}))
    assert sorted(int(row[3]) for row in found) == list(range(500))
    assert all(row[4] == b"v" + row[3] for row in found)
    assert {row[7][0]["key"] for row in found} == {"h"}


def test_a_stream_continues_from_its_checkpoint(lab: Lab, topic: str, tmp_path: Path) -> None:
    lab.rdkafka.create_topic(topic, 2)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 30}
    for _ in range(2):
        for partition in range(2):
            lab.rdkafka.produce(topic, [Record(b"v", partition=partition) for _ in range(40)])
        run_to_end(lab.stream("kafka", options), tmp_path)
    assert lab.written(tmp_path) == [(p, n) for p in range(2) for n in range(80)]


def test_real_time_mode_carries_records_from_topic_to_topic(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    target = f"{topic}-out"
    lab.rdkafka.create_topic(topic, 2)
    lab.rdkafka.create_topic(target)
    query = (
        lab.stream("kafka", {"subscribe": topic})
        .select("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", lab.penstock.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("update")
        .trigger(realTime="10 seconds")  # type: ignore[call-overload]  # no overload knows it
        .start()
    )
    try:
        # Until its first batch is planned, it is not known which offset `latest` means.
        sent = 0

        def arrives() -> bool:
            nonlocal sent
            lab.rdkafka.produce(topic, [Record(b"%d" % sent, partition=sent % 2)])
            sent += 1
            assert query.isActive, query.exception()
            return lab.rdkafka.offset(target, 0, -1) > 0

        wait_until(arrives, 60, "the first record to arrive")
        before = lab.rdkafka.offset(target, 0, -1)
        lab.rdkafka.produce(topic, [Record(b"late %d" % n, partition=n % 2) for n in range(100)])
        wait_until(lambda: lab.rdkafka.offset(target, 0, -1) >= before + 100, 30, "all records")
    finally:
        query.stop()
    (found,) = lab.rdkafka.fetch(target, 0, (0, lab.rdkafka.offset(target, 0, -1)))
    assert {b"late %d" % n for n in range(100)} <= {record.value for record in found}
