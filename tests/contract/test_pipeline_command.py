"""`penstock pipeline` as users call it: processes of their own, with Spark."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.commands.penstock_command import QUICK, penstock, started

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker() as found:
        client = LibrdkafkaClient(found.bootstrap)
        for topic in ("events", "events-once", "events-dead"):
            client.create_topic(topic, 1)
        produce(client, [("a", 1), ("b", 2), ("a", 3)])
        client.close()
        yield found


def produce(client: LibrdkafkaClient, events: list[tuple[str, int]]) -> None:
    rows = [{"id": i, "at": "2026-01-01T12:00:00Z", "amount": n} for i, n in events]
    client.produce("events", [Record(json.dumps(each).encode()) for each in rows])


def test_a_project_is_run_looked_at_and_stopped(broker: PenstockBroker, tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "dedup", tmp_path / "dedup")
    client = LibrdkafkaClient(broker.bootstrap)
    options = ["--follow", "--interval", "0.5", "--bootstrap", broker.bootstrap, *QUICK]
    running = started(tmp_path, "pipeline", "run", str(project), *options)

    def written(count: int) -> None:
        def enough() -> bool:
            assert running.poll() is None, (tmp_path / "err").read_text()[-2000:]
            return client.offset("events-once", 0, LATEST) >= count

        wait_until(enough, 150, f"{count} events")

    try:
        written(2)
        produce(client, [("b", 4), ("c", 5)])  # found by the next update
        written(3)
        second = penstock("pipeline", "run", str(project))
        assert second.returncode == 2
        assert "already runs this project" in second.stderr
        state = status(project)
        assert state["running"]
        assert state["progress"]["events_once"]["lag"] == 0
        stopped = penstock("pipeline", "stop", str(project))
        assert (stopped.returncode, stopped.stderr) == (0, "")
        assert running.wait(10) == 0
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(30)
        client.close()
    assert not status(project)["running"]
    assert (tmp_path / "err").read_text().endswith("stopped\n")
    steps = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert sum(each["rows"] for each in steps if each["query"] == "events_once") == 5


def status(project: Path) -> Any:
    return json.loads(penstock("pipeline", "status", str(project), "--format", "json").stdout)


def test_a_mistake_in_a_definition_is_told_without_a_traceback(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "dedup", tmp_path / "dedup")
    definition = project / "transformations" / "dedup.py"
    definition.write_text(definition.read_text().replace('["id"]', '["nothing"]'))
    ended = penstock("pipeline", "validate", str(project), *QUICK)
    assert ended.returncode == 1
    assert "nothing" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "\tat " not in ended.stderr
