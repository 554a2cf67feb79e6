"""A share group as a Spark stream: one partition, four tasks, each record at least once."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.groups.share_member import ShareMember
from support.spark.spark_rows import Lab, lab_beside, run_to_end

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
RECORDS = 400


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    # In local mode one failed task fails the job unless the master allows retries.
    retrying = {"spark.master": "local[2,3]"}
    with lab_beside(penstock, tmp_path_factory.mktemp("spark"), settings=retrying) as found:
        yield found


@pytest.fixture
def queue(lab: Lab, topic: str) -> str:
    """A topic with records, and a share group of the same name that starts at the first record."""
    admin = AdminClient({"bootstrap.servers": lab.penstock.bootstrap})
    earliest = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    wanted = ConfigResource(ResourceType.GROUP, topic, incremental_configs=[earliest])
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(30)
    lab.rdkafka.create_topic(topic)
    lab.numbers(topic, RECORDS)
    return topic


def shared(lab: Lab, queue: str, **more: object) -> DataFrame:
    options = {"subscribe": queue, "shareGroup": queue, "minPartitions": 4}
    return lab.stream("penstock", options | more)


def offsets(lab: Lab, folder: Path) -> list[int]:
    return [offset for _, offset in lab.written(folder)]


def is_drained(lab: Lab, queue: str) -> bool:
    """Whether another member of the group gets nothing."""
    member = ShareMember(lab.penstock.bootstrap, queue, "another", queue)
    try:
        member.join()
        return member.acquired(most=1000, wait_ms=500) == []
    finally:
        member.leave()
        member.close()


def failing_once(flag: str, at: int) -> Callable[["Iterable[pa.RecordBatch]"], Iterator[object]]:
    def passed(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            if at in batch.column("offset").to_pylist() and not Path(flag).exists():
                Path(flag).touch()
                raise RuntimeError("the first attempt of a task fails")
            yield batch

    return passed


def test_records_of_one_partition_are_divided_among_tasks_and_one_fails_once(
    lab: Lab, queue: str, tmp_path: Path
) -> None:
    frame = shared(lab, queue, maxOffsetsPerTrigger=200).withColumn("task", F.spark_partition_id())
    flag = tmp_path / "failed"
    query = run_to_end(frame.mapInArrow(failing_once(str(flag), 137), frame.schema), tmp_path)
    assert flag.exists()
    rows = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert rows == [200, 200]
    assert offsets(lab, tmp_path) == list(range(RECORDS))
    written = lab.spark.read.parquet(str(tmp_path / "out"))
    assert [row["task"] for row in written.select("task").distinct().sort("task").collect()] == [
        0,
        1,
        2,
        3,
    ]
    assert is_drained(lab, queue)
    # After a clean commit no record is delivered again, and new records are delivered.
    lab.numbers(queue, 10)
    run_to_end(frame, tmp_path)
    assert offsets(lab, tmp_path) == list(range(RECORDS + 10))


def test_a_query_that_is_stopped_and_restarted_loses_nothing(
    lab: Lab, queue: str, tmp_path: Path
) -> None:
    frame = shared(lab, queue, maxOffsetsPerTrigger=50)
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "out"))
        .start()
    )
    wait_until(lambda: query.lastProgress is not None, 60, "a first micro-batch")
    query.stop()
    before = offsets(lab, tmp_path)
    assert 0 < len(before) < RECORDS, "it was stopped in the midst"
    run_to_end(frame, tmp_path)
    assert set(offsets(lab, tmp_path)) == set(range(RECORDS))
    assert is_drained(lab, queue)


def test_a_failed_micro_batch_runs_again_with_the_same_records(
    lab: Lab, queue: str, tmp_path: Path
) -> None:
    seen: list[list[int]] = []

    def write(batch: DataFrame, number: int) -> None:
        seen.append(sorted(row["offset"] for row in batch.select("offset").collect()))
        if len(seen) == 2:
            raise RuntimeError(f"micro-batch {number} fails")

    frame = shared(lab, queue, maxOffsetsPerTrigger=100)
    started = (
        frame.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    with pytest.raises(StreamingQueryException, match="fails"):
        started.start().awaitTermination(90)
    started.start().awaitTermination(90)
    assert seen[1] == seen[2]
    assert sorted(chain(seen[0], *seen[2:])) == list(range(RECORDS))
    assert is_drained(lab, queue)


def test_options_that_do_not_fit_are_errors(lab: Lab) -> None:
    with pytest.raises(AnalysisException, match="use readStream with the trigger availableNow"):
        lab.read("penstock", {"subscribe": "t", "shareGroup": "g"}).count()
