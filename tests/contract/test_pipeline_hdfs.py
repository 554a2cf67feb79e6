"""The parallel load to Hadoop: a topic becomes Parquet on a real HDFS, each row once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from clients.protocol import Record
from peers.hdfs import Hdfs
from peers.penstock import PenstockBroker
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from support.spark.flow_runs import forget_last_commit, run_flow
from support.spark.spark_rows import Lab, lab_beside

pytestmark = [pytest.mark.peer, pytest.mark.soak, pytest.mark.timeout(600)]
PARTITIONS = 4


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    with Hdfs() as found:
        yield found


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark")) as found:
        yield found


def produce(lab: Lab, topic: str, ids: range) -> None:
    lab.rdkafka.produce(
        topic,
        [
            Record(
                json.dumps({"id": each, "day": f"2026-01-{1 + each % 5:02}"}).encode(),
                partition=each % PARTITIONS,
            )
            for each in ids
        ],
    )


@pytest.mark.row("A168")
def test_a_topic_is_loaded_in_parallel_and_exactly_once(
    lab: Lab, hdfs: Hdfs, topic: str, tmp_path: Path
) -> None:
    lab.rdkafka.create_topic(topic, PARTITIONS)
    produce(lab, topic, range(2000))
    flow = FlowSpec(
        name="load",
        source=From(
            topic=topic,
            format="json",
            schema="id bigint, day date",
            options={"maxOffsetsPerTrigger": "1000"},
        ),
        to=To(parquet=f"{hdfs.url}/lake/events", partition_by=["day"]),
    )
    run_flow(lab, flow, tmp_path)
    forget_last_commit(tmp_path, "load")
    produce(lab, topic, range(2000, 2500))
    run_flow(lab, flow, tmp_path)
    read = lab.spark.read.parquet(f"{hdfs.url}/lake/events")
    found = read.select("id", F.input_file_name().alias("file")).collect()
    assert sorted(each["id"] for each in found) == [*range(2500)]
    names = {each["file"] for each in found}
    assert all(each.startswith(f"{hdfs.url}/lake/events/day=2026-01-0") for each in names)
    assert {each.split("day=")[1].partition("/")[0] for each in names} == {
        f"2026-01-0{n}" for n in range(1, 6)
    }
    tasks = {each.rpartition("part-")[2].split("-")[0] for each in names}
    assert len(tasks) == PARTITIONS  # a separate task wrote each partition of the topic


def test_checkpoints_may_be_on_hdfs_too(lab: Lab, hdfs: Hdfs, topic: str, tmp_path: Path) -> None:
    lab.rdkafka.create_topic(topic, 1)
    lab.numbers(topic, 10)
    flow = FlowSpec(
        name="all",
        source=From(topic=topic, format="text"),
        to=To(parquet=f"{hdfs.url}/lake/lines"),
    )
    for _ in range(2):
        run_flow(lab, flow, tmp_path, storage=f"{hdfs.url}/storage")
    assert lab.spark.read.parquet(f"{hdfs.url}/lake/lines").count() == 10
    assert lab.spark.read.text(f"{hdfs.url}/storage/flows/all/commits/0").count() > 0
