"""`penstock pipeline` as users call it: in separate processes, with Spark."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST
from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.commands.penstock_command import QUICK, foreign_lines, penstock, started
from support.spark.lake_files import parquet_files, rows

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker() as found:
        yield found


def test_a_new_project_is_run_inspected_stopped_and_run_again(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    project = tmp_path / "my shop"
    assert penstock("pipeline", "init", str(project)).returncode == 0
    options = ["--bootstrap", broker.bootstrap, *QUICK]
    running = started(
        tmp_path, "pipeline", "run", str(project), "--follow", "--interval", "0.5", *options
    )
    client = LibrdkafkaClient(broker.bootstrap)

    def written(count: int, dead: int) -> None:
        def enough() -> bool:
            assert running.poll() is None, (tmp_path / "err").read_text()[-2000:]
            if not {"events", "events-dead"} <= {*client.topics()}:
                return False
            events = sum(client.offset("events", each, LATEST) for each in range(2))
            return (events, client.offset("events-dead", 0, LATEST)) == (count, dead)

        wait_until(enough, 150, f"{count} events")

    try:
        written(4, dead=2)  # the event without a user, from flow and definition
        with (project / "data" / "events.jsonl").open("a") as file:
            file.write('{"user": "bob", "action": "buy", "at": "2026-01-03T08:00:00Z"}\n')
        written(5, dead=2)
        second = penstock("pipeline", "run", str(project))
        assert second.returncode == 2
        assert "already runs this project" in second.stderr
        assert status(project)["running"]
        wait_until(lambda: lag(project, "events-to-lake") == 0, 60, "the flow to be done")
        stopped = penstock("pipeline", "stop", str(project))
        assert (stopped.returncode, stopped.stderr) == (0, "")
        assert running.wait(10) == 0
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(30)
    assert (tmp_path / "err").read_text().endswith("stopped\n")
    assert foreign_lines(tmp_path / "err") == []
    steps = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert sum(each["rows"] for each in steps if each["query"] == "events-in") == 5

    again = penstock("pipeline", "run", str(project), *options)
    assert again.returncode == 0, again.stderr[-3000:]
    assert not status(project)["running"]
    written_once(project)
    assert client.offset("events-dead", 0, LATEST) == 2
    client.close()


def written_once(project: Path) -> None:
    storage = project / "pipeline-storage"
    kept = {each.name for each in storage.iterdir()}
    assert kept >= {"catalog", "derby.log", "flows", "warehouse"}
    expected = [("ann", "buy"), ("ann", "view"), ("bob", "buy"), ("bob", "view")]
    for folder in (project / "lake" / "events", storage / "warehouse" / "events"):
        found = [row for each in parquet_files(folder) for row in rows(each)]
        assert sorted((row["user"], row["action"]) for row in found) == expected
    counted = {
        row["user"]: row["actions"] for row in rows(storage / "warehouse" / "actions_per_user")
    }
    assert counted == {"ann": 2, "bob": 2}


def status(project: Path) -> Any:
    return json.loads(penstock("pipeline", "status", str(project), "--format", "json").stdout)


def lag(project: Path, query: str) -> int | None:
    found: int | None = status(project)["progress"].get(query, {}).get("lag")
    return found


def test_a_mistake_in_a_definition_is_an_error_without_traceback(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "dedup", tmp_path / "dedup")
    definition = project / "transformations" / "dedup.py"
    definition.write_text(definition.read_text().replace('["id"]', '["nothing"]'))
    ended = penstock("pipeline", "validate", str(project), *QUICK)
    assert ended.returncode == 1
    assert "nothing" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "\tat " not in ended.stderr
