"""`penstock cluster`: brokers and ZooKeeper as processes that outlive the command."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from peers.process import free_ports, wait_until
from penstock.process_start import process_start

pytestmark = pytest.mark.peer
PENSTOCK = [sys.executable, "-m", "penstock"]


def penstock(*arguments: str, code: int = 0) -> str:
    ran = subprocess.run([*PENSTOCK, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout if code == 0 else ran.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("cluster") / "c"
    yield directory
    penstock("cluster", "stop", "--dir", str(directory), "--kill")


@pytest.fixture(scope="module")
def started(directory: Path) -> dict[str, object]:
    first, *_ = free_ports(1)
    arguments = ["--brokers", "2", "--port", str(first), "--chroot", "/myKafka"]
    printed = penstock(
        "cluster", "start", *arguments, "--own-addresses",
        "--set", "default.replication.factor=2", "--dir", str(directory),
    )  # fmt: skip
    reported: dict[str, object] = json.loads(printed)
    return reported


def leaders(bootstrap: str) -> dict[int, list[int]]:
    listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics("t", timeout=10)
    return {part: sorted(each.isrs) for part, each in listed.topics["t"].partitions.items()}


def status(directory: Path) -> dict[str, object]:
    shown = subprocess.run(
        [*PENSTOCK, "cluster", "status", "--dir", str(directory), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    reported: dict[str, object] = json.loads(shown.stdout)
    assert shown.returncode == (1 if reported["down"] or not reported["zookeeper_pid"] else 0)
    return reported


def processes(directory: Path) -> list[str]:
    """The command lines of all processes that name the directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [each for each in found if str(directory) in each]


@pytest.mark.row("A008", "A084")
def test_a_cluster_starts_stops_partly_and_comes_back(
    directory: Path, started: dict[str, object]
) -> None:
    bootstrap, connect = str(started["bootstrap"]), str(started["zookeeper"])
    pids = started["pids"]
    assert isinstance(pids, dict)
    assert sorted(pids) == ["0", "1"]
    assert bootstrap.startswith("127.0.0.11:")
    for broker in ("broker-0", "broker-1"):  # the logs are rotated
        assert " starts (pid" in (directory / broker / "output").read_text(encoding="utf-8")
        assert (directory / broker / "state-change.log").exists()
    assert "binding to port" in (directory / "zookeeper" / "output").read_text(encoding="utf-8")
    client = KazooClient(connect)
    client.start()
    try:
        assert client.get_children("/brokers/ids") == ["0", "1"]
    finally:
        client.stop()
        client.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic("t", 2)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("t", b"before", partition=0)
    assert producer.flush(20) == 0

    before = status(directory)["pids"]
    assert isinstance(before, dict)
    penstock("cluster", "stop", "--dir", str(directory), "--broker", "1", "--kill")
    assert status(directory)["down"] == [1]
    again = json.loads(penstock("cluster", "start", "--dir", str(directory)))
    assert again["pids"]["0"] == before["0"]
    assert again["pids"]["1"] != before["1"]
    wait_until(
        lambda: all(isr == [0, 1] for isr in leaders(bootstrap).values()), 20, "both in sync"
    )
    assert "down" not in penstock("cluster", "status", "--dir", str(directory))


@pytest.mark.row("A060")
def test_every_replica_is_shown_with_its_end_and_watermark(
    directory: Path, started: dict[str, object]
) -> None:
    del directory
    bootstrap = str(started["bootstrap"])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("shown", 1)])["shown"].result()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for _ in range(3):
        producer.produce("shown", b"x", partition=0)
    assert producer.flush(20) == 0

    def ends() -> list[tuple[int, int]]:
        shown = json.loads(
            penstock(
                "partition", "describe", "shown", "0", "--bootstrap", bootstrap, "--format", "json"
            )
        )
        assert sorted(shown["ar"]) == [0, 1]
        assert shown["osr"] == []
        return [(each["log_end_offset"], each["high_watermark"]) for each in shown["replicas"]]

    wait_until(lambda: ends() == [(3, 3), (3, 3)], 10, "both replicas to know what is committed")
    text = penstock("partition", "describe", "shown", "--bootstrap", bootstrap)
    assert "ISR" in text
    assert "leader" in text


def test_a_killed_broker_is_shown_as_down(directory: Path, started: dict[str, object]) -> None:
    del started
    pids = status(directory)["pids"]
    assert isinstance(pids, dict)
    os.kill(pids["0"], signal.SIGKILL)
    wait_until(lambda: status(directory)["down"] == [0], 10, "broker 0 to be down")
    penstock("cluster", "start", "--dir", str(directory))
    assert status(directory)["down"] == []


def test_bad_options_are_refused_in_one_line(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert "no cluster was started there" in penstock("cluster", "status", "--dir", nowhere, code=2)
    refused = penstock("cluster", "start", "--dir", nowhere, "--chroot", "myKafka", code=2)
    assert "--chroot myKafka" in refused
    refused = penstock("cluster", "start", "--dir", nowhere, "--set", "nonsense", code=2)
    assert "--set nonsense" in refused
    for port in map(str, free_ports(2)):  # a failed start may be repeated with other options
        refused = penstock(
            "cluster", "start", "--dir", nowhere, "--brokers", "1", "--zookeeper", "127.0.0.1:1",
            "--port", port, "--set", "zookeeper.connection.timeout.ms=300", code=2,
        )  # fmt: skip
        assert "zookeeper.connect" in refused
    refused = penstock("cluster", "start", "--dir", nowhere, "--set", "num.partitions=many", code=2)
    assert refused.startswith("penstock: --set: num.partitions is 'many'")
    assert not (tmp_path / "nowhere" / "zookeeper").exists()


def test_if_one_broker_cannot_start_the_whole_cluster_is_stopped(tmp_path: Path) -> None:
    (first,) = free_ports(1)
    directory = tmp_path / "c"
    with socket.create_server(("127.0.0.1", first + 1)):
        refused = penstock(
            "cluster", "start", "--dir", str(directory), "--brokers", "2", "--port", str(first),
            "--set", "log.retention.hour=1", code=2,
        )  # fmt: skip
    warning, line = refused.splitlines()
    assert "did you mean log.retention.hours?" in warning
    reported = f"broker 1 did not start: listeners: cannot listen on 127.0.0.1:{first + 1}: "
    assert line.startswith(f"penstock: {reported}Address already in use (see ")
    assert line.endswith("the processes started with it were ended")
    assert processes(directory) == []
    assert "no cluster was started there" in penstock(
        "cluster", "status", "--dir", str(directory), code=2
    )


@pytest.mark.parametrize(
    "fault", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.soak)]
)
def test_a_broker_without_zookeeper_stops_quickly_on_sigterm(
    fault: signal.Signals, tmp_path: Path
) -> None:
    (first,) = free_ports(1)
    directory = str(tmp_path)
    started = json.loads(
        penstock("cluster", "start", "--dir", directory, "--brokers", "1", "--port", str(first))
    )
    zookeeper = status(tmp_path)["zookeeper_pid"]
    assert isinstance(zookeeper, int)
    try:
        os.kill(zookeeper, fault)
        began = time.monotonic()
        os.kill(started["pids"]["0"], signal.SIGTERM)
        ended = partial(process_start, started["pids"]["0"])
        wait_until(lambda: ended() is None, 30, "the broker to end")
        assert time.monotonic() - began < 12
    finally:
        with suppress(ProcessLookupError):  # the killed process may be gone
            os.kill(zookeeper, signal.SIGCONT)
        penstock("cluster", "stop", "--dir", directory, "--kill")
