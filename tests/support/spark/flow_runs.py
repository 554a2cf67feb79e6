"""Runs of a single flow in a session that tests share, and what they left in topics."""

from pathlib import Path

from clients.protocol import LATEST, Record
from penstock.spark.pipeline.flow import FlowContext, start_flow
from penstock.spark.pipeline.flow_spec import FlowSpec, check_flow
from support.spark.spark_rows import Lab


def run_flow(lab: Lab, flow: FlowSpec, folder: Path, *, storage: str | None = None) -> None:
    """On what its source holds now; the checkpoint is under `folder`/storage if not elsewhere."""
    check_flow(flow)
    storage = storage or (folder / "storage").as_uri()
    place = FlowContext(lab.penstock.bootstrap, folder, storage, {"availableNow": True})
    for query in start_flow(lab.spark, flow, place):
        assert query.awaitTermination(90), "the flow did not end"


def forget_last_commit(folder: Path, flow: str) -> None:
    """As if Spark had died when the sink had a micro-batch and the checkpoint did not: the next
    run does that batch again.
    """
    commits = folder / "storage" / "flows" / flow / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)


def records(lab: Lab, topic: str) -> list[Record]:
    count = lab.rdkafka.offset(topic, 0, LATEST)
    return lab.rdkafka.fetch(topic, 0, (0, count))[0] if count else []
