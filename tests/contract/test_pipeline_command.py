"""`penstock pipeline` and `penstock sql` as users call them: processes of their own, with Spark."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from peers.penstock import SOURCE, PenstockBroker
from peers.process import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = [
    "--master=local[2]",
    "--conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf=spark.driver.memory=1g",
]
PENSTOCK = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


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


def penstock(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *words],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_project_is_run_looked_at_and_stopped(broker: PenstockBroker, tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "dedup", tmp_path / "dedup")
    client = LibrdkafkaClient(broker.bootstrap)
    command = [*PENSTOCK, "pipeline", "run", str(project), "--follow", "--interval", "0.5", *QUICK]
    command += ["--bootstrap", broker.bootstrap]
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        running = subprocess.Popen(command, env=ENVIRONMENT, stdout=out, stderr=err)

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
        assert "runs this project already" in second.stderr
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


def test_a_question_is_answered(broker: PenstockBroker) -> None:
    query = "select id, count(*) as n from events where offset < 3 group by id order by id"
    ended = penstock("sql", query, "--format", "json", "-b", broker.bootstrap, *QUICK)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == '{"id":"a","n":2}\n{"id":"b","n":1}\n'
    unknown = penstock("sql", "select * from nothing", "-b", broker.bootstrap)
    assert unknown.returncode == 2
    assert "the query names no topic; there are events" in unknown.stderr
