"""Spark as in production: a standalone cluster whose executors get penstock only from an archive,
and a Connect server whose clients do not have penstock at all.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from peers.penstock import PenstockBroker
from peers.spark import SparkCluster, SparkConnect
from peers.spark_session import QUICK
from support.transactions.committed_values import committed

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
PENSTOCK = [sys.executable, "-m", "penstock"]
PARTITIONS = 4
MEMORY = {"spark.driver.memory": "1g", "spark.executor.memory": "512m"}
QUICKLY = [f"--conf={name}={value}" for name, value in {**QUICK, **MEMORY}.items()]
IDS = [f"e{number % 30}" for number in range(40)]
"""Event ids; the last ten are duplicates."""


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker() as found:
        client = LibrdkafkaClient(found.bootstrap)
        for topic in ("events", "events-written", "events-copied"):
            client.create_topic(topic, PARTITIONS)
        for topic in ("events-once", "events-dead"):
            client.create_topic(topic, 1)
        client.produce("events", [Record(event(at, each)) for at, each in enumerate(IDS)])
        client.close()
        yield found


def event(number: int, name: str) -> bytes:
    found = {"id": name, "at": "2026-01-01T12:00:00Z", "amount": number}
    return json.dumps(found).encode()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "environment.tar"
    ended = run(*PENSTOCK, "pipeline", "pack", str(path))
    assert "numpy" in ended.stderr
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    for module in ("penstock", "numpy", "pyspark"):
        tried = [str(folder / "bin" / "python"), "-c", f"import {module}"]
        assert subprocess.run(tried, env={}, capture_output=True, check=False).returncode == 1
    return folder


@pytest.fixture(scope="module")
def cluster(bare: Path) -> Iterator[SparkCluster]:
    with SparkCluster(2, python=bare / "bin") as spark:
        yield spark


@pytest.fixture(scope="module")
def connect() -> Iterator[SparkConnect]:
    with SparkConnect() as server:
        yield server


def run(*command: str, fails: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
    # Spark passes this path to the executors, which run elsewhere, where these folders do not
    # exist.
    path = {"PYTHONPATH": f"src{os.pathsep}tests", "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **path, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (ended.returncode != 0) is fails, ended.stderr[-3000:]
    return ended


def rows_of(broker: PenstockBroker, topic: str) -> list[tuple[int, int, str]]:
    found = committed(broker.bootstrap, topic, PARTITIONS)
    return [
        (partition, offset, value)
        for partition, values in enumerate(found)
        for offset, value in enumerate(values)
    ]


def events_once(broker: PenstockBroker) -> list[str]:
    client = LibrdkafkaClient(broker.bootstrap)
    end = client.offset("events-once", 0, LATEST)
    records = client.fetch("events-once", 0, (0, end))[0] if end else []
    client.close()
    return [json.loads(each.value or b"null")["id"] for each in records]


@pytest.mark.soak
def test_executors_read_with_the_penstock_of_the_archive(
    broker: PenstockBroker, cluster: SparkCluster, archive: Path, bare: Path
) -> None:
    version = f"python3.{sys.version_info.minor}"
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    job = [
        sys.executable,
        "-m",
        "support.spark.cluster_read",
        cluster.master,
        broker.bootstrap,
        str(archive),
    ]
    ended = run(*job, PYSPARK_PYTHON=version, PATH=here)
    found = json.loads(ended.stdout)
    assert [tuple(each) for each in found["rows"]] == rows_of(broker, "events")
    folders = {imported.partition("/penstock-environment/")[0] for _, imported in found["places"]}
    assert {Path(each).parents[1].name for each in folders} == {"work-1", "work-2"}
    assert {python for python, _ in found["places"]} == {str(bare)}


def test_a_pipeline_runs_on_a_cluster_without_penstock(
    broker: PenstockBroker, cluster: SparkCluster, archive: Path, tmp_path: Path
) -> None:
    project = shutil.copytree(ROOT / "examples" / "dedup", tmp_path / "dedup")
    before = len(events_once(broker))
    where = ["--master", cluster.master, "--archive", str(archive), "-b", broker.bootstrap]
    run(*PENSTOCK, "pipeline", "run", str(project), *where, *QUICKLY)
    assert sorted(events_once(broker)[before:]) == sorted(set(IDS))
    unpacked = cluster.folder.glob("work-*/*/*/penstock-environment")
    assert {each.parents[2].name for each in unpacked} == {"work-1", "work-2"}


def test_a_connect_client_reads_and_writes_topics(
    broker: PenstockBroker, connect: SparkConnect, tmp_path: Path
) -> None:
    job = [
        sys.executable,
        "-m",
        "support.spark.connect_client",
        connect.url,
        broker.bootstrap,
        str(tmp_path),
    ]
    ended = run(*job, PYTHONPATH="tests")
    events = rows_of(broker, "events")
    assert [tuple(each) for each in json.loads(ended.stdout)] == events
    assert rows_of(broker, "events-copied") == events
    values = [value for _, _, value in rows_of(broker, "events-written")]
    assert sorted(values) == sorted(value for _, _, value in events)


@pytest.mark.soak
def test_a_pipeline_runs_on_a_connect_server(
    broker: PenstockBroker, connect: SparkConnect, tmp_path: Path
) -> None:
    project = shutil.copytree(ROOT / "examples" / "dedup", tmp_path / "dedup")
    before = len(events_once(broker))
    where = ["--remote", connect.url, "-b", broker.bootstrap]
    run(*PENSTOCK, "pipeline", "run", str(project), *where)
    assert sorted(events_once(broker)[before:]) == sorted(set(IDS))


@pytest.mark.soak
def test_an_archive_without_penstock_is_an_error_without_traceback(
    broker: PenstockBroker, cluster: SparkCluster, tmp_path: Path
) -> None:
    project = shutil.copytree(ROOT / "examples" / "dedup", tmp_path / "dedup")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass  # so that penstock could come only from the archive
    where = ["--master", cluster.master, "--archive", str(tmp_path / "empty.tar")]
    command = [*PENSTOCK, "pipeline", "run", str(project), *where, "-b", broker.bootstrap]
    ended = run(*command, *QUICKLY, fails=True)
    assert "executors cannot import" in ended.stderr
    assert "penstock pipeline pack" in ended.stderr
    assert "Traceback" not in ended.stderr
