"""`penstock serve --workers`: clients use all workers, and every killed process comes back."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import SOURCE
from peers.process import free_port_range, wait_until
from peers.tools import tool
from peers.workers import PenstockWorkers
from peers.zookeeper import ZooKeeper
from penstock.process_start import process_start

pytestmark = pytest.mark.timeout(180)
QUIET = {"log_level": 0, "socket.timeout.ms": 5000}
PARTITIONS = 6
HEAD_BYTES = 16
"""Enough to identify a record; keeping a gigabyte as text would take minutes, and memory."""


def make_topic(bootstrap: str, name: str = "t") -> dict[int, int]:
    """Creates the topic; returns the leader of each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for done in admin.create_topics([NewTopic(name, PARTITIONS)]).values():
        done.result(20)
    found = admin.list_topics(topic=name, timeout=20).topics[name].partitions
    return {index: each.leader for index, each in found.items()}


class Load:
    """Produces to all partitions, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.acknowledged: set[str] = set()
        self.failed: list[object] = []
        self._number = 0
        self.connect()

    def connect(self) -> None:
        """Uses a new client: librdkafka 2.16 may never reconnect when all addresses change."""
        self._producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                **QUIET,
            }
        )

    def run(self, more: int) -> None:
        """Produces until `more` records are acknowledged."""
        wanted = len(self.acknowledged) + more
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, self.failed[:3]
            if len(self._producer) < 500:
                self._produce()
            self._producer.poll(0 if len(self._producer) < 500 else 0.01)

    def send(self, count: int) -> None:
        """Produces `count` records without waiting."""
        for _ in range(count):
            self._produce()
        self._producer.poll(0)

    def _produce(self) -> None:
        partition = self._number % PARTITIONS
        self._producer.produce(
            "t", f"{self._number}", partition=partition, on_delivery=self._delivered
        )
        self._number += 1

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.add(message.value().decode())  # type: ignore[attr-defined]
        else:
            self.failed.append(error)

    def check(self) -> None:
        """Checks that every acknowledged record is there once, and that none failed."""
        assert self._producer.flush(60) == 0
        assert self.failed == []
        found = read_all(self.bootstrap)
        assert len(found) == len(set(found))
        assert self.acknowledged <= set(found)


def read_all(bootstrap: str) -> list[str]:
    """The beginning of every record."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **QUIET})
    partitions = [TopicPartition("t", index, 0) for index in range(PARTITIONS)]
    end = sum(consumer.get_watermark_offsets(each, timeout=20)[1] for each in partitions)
    consumer.assign(partitions)
    found: list[str] = []
    deadline = time.monotonic() + 100
    while len(found) < end:
        assert time.monotonic() < deadline, f"{len(found)} of {end} records were read"
        messages = consumer.consume(10_000, 0.5)
        found += [
            (each.value() or b"")[:HEAD_BYTES].decode(errors="replace")
            for each in messages
            if not each.error()
        ]
    consumer.close()
    return found


def read_in_group(bootstrap: str, count: int) -> int:
    settings = {"group.id": "readers", "auto.offset.reset": "earliest", **QUIET}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe(["t"])
    found = 0
    deadline = time.monotonic() + 60
    while found < count and time.monotonic() < deadline:
        found += sum(not each.error() for each in consumer.consume(10_000, 0.5))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def test_clients_use_all_workers(tmp_path: Path) -> None:
    with PenstockWorkers(3, folder=tmp_path) as workers:
        state = workers.state
        port = int(state.bootstrap.rpartition(":")[2])
        addresses = [each.listeners["PLAINTEXT"] for each in state.workers]
        assert addresses == [f"127.0.0.1:{port + 1 + index}" for index in range(3)]
        assert [each.broker_id for each in state.workers] == [1, 1001, 1002]
        leaders = make_topic(workers.bootstrap)
        assert sorted(leaders.values()) == [1, 1, 1001, 1001, 1002, 1002]
        load = Load(workers.bootstrap)
        load.run(2000)
        load.check()
        assert read_in_group(workers.bootstrap, 2000) >= 2000
        admin = AdminClient({"bootstrap.servers": workers.bootstrap, **QUIET})
        offsets = admin.list_topics(timeout=20).topics["__consumer_offsets"].partitions
        assert {len(each.replicas) for each in offsets.values()} == {1}
        assert {each.leader for each in offsets.values()} == {1, 1001, 1002}
        assert workers.log().count("internal topics get one replica") == 1


@pytest.mark.row("A012")
def test_nothing_acknowledged_is_lost_whichever_process_is_killed(tmp_path: Path) -> None:
    with PenstockWorkers(3, folder=tmp_path) as workers:
        make_topic(workers.bootstrap)
        load = Load(workers.bootstrap)
        load.run(1000)

        def restart_all() -> None:
            workers.kill(0)
            workers.start(0)

        kills: list[Callable[[], None]] = [
            lambda: workers.kill_worker(0),
            lambda: workers.kill_worker(1),
            workers.kill_store,
            lambda: workers.kill_worker(2),
            restart_all,
            workers.kill_store,
        ]
        for kill in kills:
            load.send(300)
            kill()
            load.run(1000)
        load.check()
        make_topic(workers.bootstrap, "after")


def test_workers_without_supervisor_and_store_end_by_themselves(tmp_path: Path) -> None:
    with PenstockWorkers(2, folder=tmp_path) as workers:
        make_topic(workers.bootstrap)
        load = Load(workers.bootstrap)
        load.run(1000)
        left = [each.pid for each in workers.state.workers]
        store = workers.store_pid
        workers.kill(0)
        with suppress(ProcessLookupError):  # the store ends after the last worker
            os.kill(store, signal.SIGKILL)
        wait_until(lambda: not any(map(process_start, left)), 30, "the workers' end")
        workers.start(0)
        load.check()


def test_the_metadata_store_stops_last_when_all_processes_get_sigterm(tmp_path: Path) -> None:
    """A service manager signals all processes at once."""
    with PenstockWorkers(2, folder=tmp_path) as workers:
        pid = workers.state.pid
        os.killpg(os.getpgid(pid), signal.SIGTERM)
        wait_until(lambda: process_start(pid) is None, 30, "the end of the supervisor")
        assert "lost the connection to the metadata store" not in workers.log()
        assert not (workers.directory / "broker.json").exists()


def test_a_worker_that_hangs_does_not_block_the_others(tmp_path: Path) -> None:
    with PenstockWorkers(
        2, "--set", "zookeeper.session.timeout.ms=1000", folder=tmp_path
    ) as workers:
        leaders = make_topic(workers.bootstrap)
        pid = workers.worker_pid(1)
        os.kill(pid, signal.SIGSTOP)
        try:
            admin = AdminClient({"bootstrap.servers": workers.bootstrap, **QUIET})

            def is_led_by_none() -> bool:
                found = admin.list_topics(topic="t", timeout=20).topics["t"].partitions
                return {each.leader for each in found.values()} == {1, -1}

            wait_until(is_led_by_none, 30, "the session's end")
        finally:
            os.kill(pid, signal.SIGCONT)
        load = Load(workers.bootstrap)
        load.run(1000)
        load.check()
        assert set(leaders.values()) == {1, 1001}


def test_a_worker_that_cannot_start_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    with PenstockWorkers(2, folder=tmp_path) as workers:
        leaders = make_topic(workers.bootstrap)
        meta = workers.data_dir() / "worker.1" / "meta.properties"
        good = meta.read_bytes()
        meta.write_bytes(b"version=9\n")
        os.kill(workers.worker_pid(1), signal.SIGKILL)
        wait_until(lambda: "has died 5 times in a row" in workers.log(), 30, "the report")
        assert "has version '9', neither 0 nor 1" in workers.log()
        kept = [index for index, leader in leaders.items() if leader == 1]
        producer = Producer({"bootstrap.servers": workers.bootstrap, **QUIET})
        for index in kept:
            producer.produce("t", f"x{index}", partition=index)
        assert producer.flush(20) == 0
        with urlopen(f"http://{workers.state.http}/metrics") as page:
            assert 'penstock_worker_up{worker="1"} 0' in page.read().decode()
        meta.write_bytes(good)
        load = Load(workers.bootstrap)
        load.run(500)  # once the worker has started
        load.check()


def test_a_state_file_that_cannot_be_written_stops_no_worker(tmp_path: Path) -> None:
    """As on a full disk, at the moment when a worker comes back."""
    with PenstockWorkers(2, folder=tmp_path) as workers:
        leaders = make_topic(workers.bootstrap)
        (workers.directory / "broker.json.new").mkdir()
        os.kill(workers.worker_pid(1), signal.SIGKILL)
        wait_until(lambda: "broker.json: cannot be updated" in workers.log(), 30, "the report")
        load = Load(workers.bootstrap)
        load.run(len(leaders) * 10)
        load.check()


def test_changing_the_number_of_workers_loses_nothing(tmp_path: Path) -> None:
    with PenstockWorkers(1, folder=tmp_path) as workers:
        make_topic(workers.bootstrap)
        load = Load(workers.bootstrap)
        load.run(500)
        read_in_group(workers.bootstrap, 500)
        for number in (3, 2, None, 1):
            workers.stop(0)
            workers.resize(number)
            workers.start(0)
            load.connect()
            load.run(500)
            load.check()
            admin = AdminClient({"bootstrap.servers": workers.bootstrap, **QUIET})
            assert len(admin.list_topics(timeout=20).brokers) == (number or 2)
        assert read_in_group(workers.bootstrap, 2000) >= 2000
        workers.stop(0)


@pytest.mark.soak
def test_killing_a_start_while_partitions_move_loses_nothing(tmp_path: Path) -> None:
    """With 1 GB of records: nothing is copied, so the start is as quick as without them."""
    value = os.urandom(1 << 18)
    with PenstockWorkers(1, folder=tmp_path) as workers:
        make_topic(workers.bootstrap)
        producer = Producer({"bootstrap.servers": workers.bootstrap, "acks": "all", **QUIET})
        for number in range(4096):
            producer.produce("t", b"%d:" % number + value, partition=number % PARTITIONS)
            while len(producer) > 100:
                producer.poll(0.1)
        assert producer.flush(60) == 0
        workers.stop(0)
        dice = Random(0)
        for number in (3, 2, 4, 1, 3, 2, 1, 2) * 3:
            serve = penstock_process(workers, number)
            time.sleep(dice.uniform(0.2, 1.5))
            serve.kill()
            serve.wait()
        workers.resize(2)
        workers.start(0)
        found = read_all(workers.bootstrap)
        numbers = sorted(int(each.partition(":")[0]) for each in found)
        assert numbers == list(range(4096))


def penstock_process(workers: PenstockWorkers, number: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "penstock", "serve", "--port", "0"]
    return subprocess.Popen(
        [*command, "--dir", str(workers.directory), "--workers", str(number)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.peer
def test_kafka_reads_the_folder_of_every_worker(tmp_path: Path) -> None:
    with PenstockWorkers(1, folder=tmp_path) as workers:
        make_topic(workers.bootstrap)
        load = Load(workers.bootstrap)
        load.run(500)
        workers.stop(0)
        workers.resize(3)
        workers.start(0)
        load.connect()
        load.run(500)
        load.check()
        workers.stop(0)
        for index in range(3):
            files = sorted((workers.data_dir() / f"worker.{index}").glob("t-*/*.log"))
            assert len(files) == 2
            shown = tool("kafka-dump-log", "--deep-iteration", "--files", ",".join(map(str, files)))
            assert shown.stdout.count("baseOffset: 0 ") == 2
            assert "isvalid: false" not in shown.stdout


@pytest.mark.peer
def test_machines_with_workers_form_a_cluster_on_zookeeper(tmp_path: Path) -> None:
    """Replicas are on different hosts, and a killed worker's partitions stay available."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeper(settings={"tickTime": 500}))
        machines = []
        for number in (1, 2):
            host = f"127.0.0.{10 + number}"
            settings = (
                f"broker.id={number}",
                f"zookeeper.connect={zookeeper.connect}",
                f"listeners=PLAINTEXT://{host}:{free_port_range(4)}",
                "min.insync.replicas=1",
            )
            options = [word for each in settings for word in ("--set", each)]
            machine = PenstockWorkers(2, *options, folder=tmp_path / str(number))
            machines.append(stack.enter_context(machine))
        first = machines[0].bootstrap
        admin = AdminClient({"bootstrap.servers": first, **QUIET})
        wait_until(lambda: len(admin.list_topics(timeout=20).brokers) == 4, 30, "four brokers")
        for done in admin.create_topics([NewTopic("t", PARTITIONS, 2)]).values():
            done.result(20)
        seen: list[Any] = []

        def known() -> bool:
            """Whether the broker that answers has learned of the topic."""
            seen[:] = [admin.list_topics(timeout=20)]
            return "t" in seen[0].topics

        wait_until(known, 30, "the topic")
        (found,) = seen
        hosts = {broker: each.host for broker, each in found.brokers.items()}
        partitions = found.topics["t"].partitions.values()
        assert all(len({hosts[each] for each in one.replicas}) == 2 for one in partitions)
        assert len({each.leader for each in partitions}) == 4
        load = Load(first)
        load.run(1000)
        for machine in machines:
            for index in range(2):
                load.send(200)
                machine.kill_worker(index)
                load.run(500)
        load.check()
        machines[1].stop(0)
        load.run(500)
        load.check()


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(*arguments: str) -> str:
    done = penstock("serve", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_a_daemon_with_workers_is_found_measured_and_stopped(tmp_path: Path) -> None:
    home = tmp_path / "data"
    started = penstock("serve", "--dir", str(home), "--port", "0", "--workers", "2", "--daemon")
    assert started.returncode == 0, started.stderr
    state = json.loads((home / "broker.json").read_text())
    assert started.stdout == f"ready {state['bootstrap']}\n"
    try:
        with urlopen(f"http://{state['http']}/metrics") as page:
            metrics = page.read().decode()
        assert 'penstock_worker_up{worker="1"} 1' in metrics
        heads = [line for line in metrics.splitlines() if line.startswith("# TYPE ")]
        assert len(heads) == len(set(heads))
        for path in ("healthz", "readyz"):
            with urlopen(f"http://{state['http']}/{path}") as page:
                assert page.status == 200
        logs = {each.name for each in home.glob("*.log")}
        assert {"penstock.log", "penstock-worker-0.log", "penstock-worker-1.log"} <= logs
        ready = f"2 workers are ready behind {state['bootstrap']}"
        assert ready in (home / "penstock.log").read_text()
        assert "serves PLAINTEXT" in (home / "penstock-worker-1.log").read_text()
        line = refused("--dir", str(home), "--port", "0", "--workers", "2")
        assert f"is in use: a broker (pid {state['pid']}) runs there" in line
    finally:
        stopped = penstock("stop", "--dir", str(home))
    assert stopped.returncode == 0, stopped.stderr
    assert not (home / "broker.json").exists()
    assert not (home / "store.sock").exists()
    for worker in state["workers"]:
        assert not Path(f"/proc/{worker['pid']}").exists()


def unchanged(home: Path) -> bool:
    """Whether nothing was created except the lock that a start takes."""
    return [each.name for each in home.rglob("*")] == ["broker.lock"]


@pytest.mark.parametrize("offset", [0, 2])
def test_a_port_in_use_is_reported_in_one_line(offset: int, tmp_path: Path) -> None:
    """The shared port, or the port of the second worker."""
    first = free_port_range(5)
    with socket.create_server(("127.0.0.1", first + offset)):
        line = refused("--dir", str(tmp_path), "--port", str(first), "--workers", "2")
    assert unchanged(tmp_path)
    taken = f"127.0.0.1:{first + offset}"
    assert line == f"penstock: listeners: cannot listen on {taken}: Address already in use"
    assert not (tmp_path / "workers.json").exists()


def test_a_directory_of_other_workers_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs" / "worker.0").mkdir(parents=True)
    for workers in ("1", "2"):
        line = refused("--dir", str(tmp_path), "--port", "0", "--workers", workers)
        assert "worker.0 is a worker's, but" in line
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broker.lock", "logs"]
    assert [*(tmp_path / "logs" / "worker.0").iterdir()] == []


def test_more_workers_than_the_open_file_limit_allows_are_refused_in_one_line(
    tmp_path: Path,
) -> None:
    command = ["bash", "-c", 'ulimit -n 100; exec "$@"', "-", sys.executable, "-m", "penstock"]
    done = subprocess.run(
        [*command, "serve", "--dir", str(tmp_path), "--port", "0", "--workers", "40"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert unchanged(tmp_path)
    line = done.stderr.strip().splitlines()[-1]
    assert "--workers 40: 184 files would be open in their supervisor, and the limit is 100" in line
