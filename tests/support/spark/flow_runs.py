"""Runs single flows in a shared session, and reads what they wrote to topics."""

from pathlib import Path

from clients.protocol import LATEST, Record
from penstock.spark.pipeline.flow import FlowContext, start_flow
from penstock.spark.pipeline.flow_spec import FlowSpec, check_flow
from support.spark.spark_rows import Lab


def run_flow(lab: Lab, flow: FlowSpec, folder: Path, *, storage: str | None = None) -> None:
    """Runs the flow on what its source holds now; by default the checkpoint is under
    `folder`/storage.
    """
    check_flow(flow)
    storage = storage or (folder / "storage").as_uri()
    place = FlowContext(lab.penstock.bootstrap, folder, storage, {"availableNow": True})
    for query in start_flow(lab.spark, flow, place):
        assert query.awaitTermination(90), "the flow did not end"


def forget_last_commit(folder: Path, flow: str) -> None:
    """Simulates that Spark died after the sink had a micro-batch and before the checkpoint had it:
    the next run repeats that batch.
    """
    commits = folder / "storage" / "flows" / flow / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)


def records(lab: Lab, topic: str) -> list[Record]:
    count = lab.rdkafka.offset(topic, 0, LATEST)
    return lab.rdkafka.fetch(topic, 0, (0, count))[0] if count else []
