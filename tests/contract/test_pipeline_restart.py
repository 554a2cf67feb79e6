"""Projects are run, stopped or killed, and run again: no row is lost or repeated."""

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clients.brokers import Target
from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import wait_until
from peers.spark_jars import DELTA, spark_jars
from support.commands.penstock_command import QUICK, foreign_lines, penstock, started
from support.spark.lake_files import delta_files, parquet_files, rows
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
SPEC = "name: {name}\nstorage: storage\n"
COPIES = """\
topics:
  {name}-out: {{partitions: 2}}
flows:
  - name: copy
    from: {{topic: {name}, options: {{maxOffsetsPerTrigger: "{step}"}}}}
    sql: select key, value from {{source}}
    to: {{topic: {name}-out, options: {{transactional: "true"}}}}
  - name: lake
    from:
      topic: {name}
      format: json
      schema: id bigint
      options: {{maxOffsetsPerTrigger: "{step}"}}
    to: {{{lake}: lake}}
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker() as found:
        yield found


def run(project: Path, broker: Target, *options: str) -> None:
    ended = penstock(
        "pipeline", "run", str(project), "--bootstrap", broker.bootstrap, *QUICK, *options
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


def copies(broker: Target, folder: Path, name: str, lake: str, count: int) -> Path:
    """A project that copies a topic of `count` records, in about five micro-batches."""
    client = LibrdkafkaClient(broker.bootstrap)
    client.create_topic(name, 2)
    records = [Record(b'{"id": %d}' % n, b"%d" % n, partition=n % 2) for n in range(count)]
    client.produce(name, records)
    client.close()
    project = folder / name
    project.mkdir()
    (project / "spark-pipeline.yml").write_text(SPEC.format(name=name))
    own = COPIES.format(name=name, step=count // 5, lake=lake)
    (project / "penstock.yml").write_text(own)
    return project


def kill_once_begun(
    project: Path,
    broker: Target,
    done: int,
    *options: str,
    victim: Callable[[int], int] = lambda pid: pid,
) -> None:
    """Kills the process that runs the project, or one of its children, while it works (SIGKILL)."""
    running = started(
        project, "pipeline", "run", str(project), "--bootstrap", broker.bootstrap, *options
    )
    client = LibrdkafkaClient(broker.bootstrap)
    topic = f"{project.name}-out"

    def begun() -> bool:
        assert running.poll() is None, (project / "err").read_text()[-3000:]
        if topic not in client.topics():
            return False
        return sum(client.offset(topic, each, LATEST) for each in range(2)) > done

    try:
        wait_until(begun, 150, f"more than {done} rows")
        os.kill(victim(running.pid), signal.SIGKILL)
        assert running.wait(60) != 0
    finally:
        running.kill()
        running.wait()
        client.close()


def driver(pid: int) -> int:
    """The JVM that this process started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (found,) = [
        int(each) for each in children if Path(f"/proc/{each}/comm").read_text() == "java\n"
    ]
    return found


def follow_to_the_end(project: Path, broker: Target, lake: str, count: int) -> None:
    """Runs until everything is copied, then sends Ctrl-C, which stops the run cleanly."""
    following = started(
        project,
        *("pipeline", "run", str(project), "--bootstrap", broker.bootstrap, *QUICK),
        *("--follow", "--interval", "0.2"),
    )

    def copied() -> bool:
        assert following.poll() is None, (project / "err").read_text()[-3000:]
        done = sum(map(len, committed(broker.bootstrap, f"{project.name}-out", 2, while_open=True)))
        return done >= count and len(lake_ids(project, lake)) >= count

    try:
        wait_until(copied, 150, f"{count} rows")
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
    finally:
        following.kill()
        following.wait()
    assert (project / "err").read_text().endswith("stopped\n")
    assert foreign_lines(project / "err") == []


def lake_ids(project: Path, lake: str) -> list[object]:
    files = {"parquet": parquet_files, "delta": delta_files}[lake](project / "lake")
    return [row["id"] for each in files for row in rows(each)]


def check_copied(project: Path, broker: Target, lake: str, count: int) -> None:
    expected = Counter(range(count))
    topic = f"{project.name}-out"
    found = [
        json.loads(each)["id"] for part in committed(broker.bootstrap, topic, 2) for each in part
    ]
    assert Counter(found) == expected
    assert Counter(lake_ids(project, lake)) == expected


def test_a_killed_run_continues_and_writes_each_row_once(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    project = copies(broker, tmp_path, "once", "parquet", 1000)
    kill_once_begun(project, broker, 200, *QUICK)
    follow_to_the_end(project, broker, "parquet", 1000)
    check_copied(project, broker, "parquet", 1000)


@pytest.mark.soak
def test_a_run_against_kafka_continues_after_its_driver_is_killed(tmp_path: Path) -> None:
    with KafkaCluster(folder=tmp_path / "kafka") as kafka:
        project = copies(kafka, tmp_path, "once", "parquet", 1000)
        kill_once_begun(project, kafka, 200, *QUICK, victim=driver)
        (said,) = foreign_lines(project / "err")
        assert said.startswith("penstock: Spark's JVM was ended by SIGKILL; the next run goes on")
        (project / "err").unlink()
        follow_to_the_end(project, kafka, "parquet", 1000)
        check_copied(project, kafka, "parquet", 1000)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lake", ["parquet", "delta"])
def test_a_run_killed_repeatedly_writes_each_row_once(
    broker: PenstockBroker, tmp_path: Path, lake: str
) -> None:
    options = [*QUICK, f"--conf=spark.jars={spark_jars(DELTA)}"]
    project = copies(broker, tmp_path, f"often-{lake}", lake, 4000)
    for round_ in range(3):
        kill_once_begun(project, broker, 900 * round_ + random.randrange(800), *options)
    run(project, broker, *options[len(QUICK) :])
    check_copied(project, broker, lake, 4000)
