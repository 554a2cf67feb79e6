"""Topics to Parquet and Delta, each row once, even if a micro-batch is repeated."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.protocol import Record
from peers.penstock import PenstockBroker
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from penstock.spark.pipeline.settings import DELTA
from support.spark.flow_runs import forget_last_commit, run_flow
from support.spark.spark_rows import Lab, lab_beside

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
SCHEMA = "id bigint, day date"


@pytest.fixture(scope="module")
def lab(penstock: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_beside(penstock, tmp_path_factory.mktemp("spark"), settings=DELTA) as found:
        yield found


def produce(lab: Lab, topic: str, ids: range) -> None:
    rows = [{"id": each, "day": f"2026-01-{1 + each % 3:02}"} for each in ids]
    lab.rdkafka.produce(topic, [Record(json.dumps(each).encode()) for each in rows])


def ids(lab: Lab, format_name: str, path: Path) -> list[int]:
    found = lab.spark.read.format(format_name).load(str(path)).select("id").collect()
    return sorted(each["id"] for each in found)


@pytest.mark.parametrize(
    ("format_name", "to"),
    [
        ("parquet", To(parquet="lake", partition_by=["day"])),
        ("delta", To(delta="lake", partition_by=["day"])),
    ],
)
def test_a_repeated_micro_batch_adds_nothing(
    lab: Lab, topic: str, tmp_path: Path, format_name: str, to: To
) -> None:
    lab.rdkafka.create_topic(topic, 1)
    produce(lab, topic, range(200))
    flow = FlowSpec(
        name="lake",
        source=From(topic=topic, format="json", schema=SCHEMA),
        to=to,
    )
    run_flow(lab, flow, tmp_path)
    forget_last_commit(tmp_path, "lake")
    produce(lab, topic, range(200, 250))
    run_flow(lab, flow, tmp_path)
    assert ids(lab, format_name, tmp_path / "lake") == [*range(250)]
    days = [each.name for each in sorted((tmp_path / "lake").glob("day=*"))]
    assert days == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]
