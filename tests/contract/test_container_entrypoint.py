"""The image's entry point as a plain process, with the environment of the compose file."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml  # type: ignore[import-untyped]
from confluent_kafka.admin import AdminClient

from peers.process import free_ports
from penstock.broker.startup.state_file import BrokerState, read_state

CONTAINER = Path(__file__).parents[2] / "deploy" / "container"
ENTRY_POINT = CONTAINER / "entrypoint.sh"
CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def environment(volume: Path, ports: list[int]) -> dict[str, str]:
    compose = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))
    given = {name: str(text) for name, text in compose["services"]["broker"]["environment"].items()}
    outside, inside, controller = ports
    bound = f"PLAINTEXT_HOST://:{outside},PLAINTEXT://:{inside},CONTROLLER://:{controller}"
    reported = f"PLAINTEXT_HOST://localhost:{outside},PLAINTEXT://127.0.0.1:{inside}"
    ours = {name: os.environ[name] for name in ("PENSTOCK_PURE",) if name in os.environ}
    return {
        **ours,
        **given,
        "KAFKA_LISTENERS": bound,
        "KAFKA_ADVERTISED_LISTENERS": reported,
        "KAFKA_LOG_DIRS": str(volume),
        "PENSTOCK_HTTP_LISTEN": "127.0.0.1:0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@contextmanager
def started(environ: dict[str, str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen([ENTRY_POINT], env=environ, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(60) == 0, (folder / "output").read_text()


def test_a_compose_file_for_kafka_starts_a_broker(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    ports = free_ports(3)
    environ = environment(volume, ports)
    with ExitStack() as stack:
        manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        process = stack.enter_context(started(environ, tmp_path))
        assert manager.recv(100) == b"READY=1"
        state = read_state(volume)
        assert state is not None
        assert state.pid == process.pid  # so that signals reach the broker
        assert state.cluster_id == CLUSTER
        with urlopen(f"http://{state.http}/readyz", timeout=30) as response:
            assert response.status == 200
        admin = AdminClient({"bootstrap.servers": f"localhost:{ports[0]}", "log_level": 0})
        assert list(admin.list_topics(timeout=30).brokers) == [1]
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", ports[2])) != 0  # there is no CONTROLLER listener
    assert (volume / "logs" / "meta.properties").exists()


UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


def has_namespaces() -> bool:
    if shutil.which("nsenter") is None or shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="this user may not make namespaces of processes")
def test_a_broker_in_a_container_can_be_backed_up_and_stopped(tmp_path: Path) -> None:
    """A broker that is process 1 of the namespace could not be paused."""
    environ = environment(tmp_path / "volume", free_ports(3))
    with ExitStack() as stack:
        manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        output = stack.enter_context((tmp_path / "output").open("wb"))
        outer = subprocess.Popen([*UNSHARE, ENTRY_POINT], env=environ, stdout=output, stderr=output)
        stack.callback(outer.kill)
        assert manager.recv(100) == b"READY=1"
        listed = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()
        entry_point = int(listed)
        stack.callback(outer.wait, 60)
        stack.callback(os.kill, entry_point, signal.SIGTERM)
        inside = ["nsenter", "-t", str(entry_point), "--user", "--pid", "--mount"]
        penstock = shutil.which("penstock", path=environ["PATH"]) or ""
        done = subprocess.run(
            [*inside, penstock, "backup", tmp_path / "backup", "--dir", tmp_path / "volume"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert outer.returncode == 0, (tmp_path / "output").read_text()
    assert (tmp_path / "backup" / "manifest.json").exists()


def run(environ: dict[str, str]) -> str:
    done = subprocess.run(
        [ENTRY_POINT], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def test_a_kraft_quorum_of_several_nodes_is_refused(tmp_path: Path) -> None:
    environ = environment(tmp_path, free_ports(3))
    environ["KAFKA_CONTROLLER_QUORUM_VOTERS"] = "1@a:9093,2@b:9093,3@c:9093"
    assert "several brokers need ZooKeeper" in run(environ)


@pytest.mark.parametrize(
    ("variable", "reported"),
    [
        ("KAFKA_SSL_KEYSTORE_FILENAME", "missing.p12 is not there or cannot be read"),
        ("KAFKA_SSL_KEYSTORE_CREDENTIALS", "missing.p12 is not there or cannot be read"),
        ("CLUSTER_ID", "CLUSTER_ID: "),
    ],
)
def test_unusable_settings_are_named(tmp_path: Path, variable: str, reported: str) -> None:
    environ = environment(tmp_path, free_ports(3)) | {variable: "missing.p12"}
    assert reported in run({**environ, "PENSTOCK_SECRETS": str(tmp_path)})


def test_the_directory_of_a_kafka_broker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    reported = run(environment(tmp_path, free_ports(3)))
    assert "is a log directory of another broker" in reported


def test_the_settings_file_decides_volume_and_node_id(tmp_path: Path) -> None:
    """Formerly such logs were written to the default volume, which is lost with the container."""
    (port,) = free_ports(1)
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs = {tmp_path}/volume \r\nnode.id=7\n"
    )
    given = environment(tmp_path, free_ports(3))
    kept = ("PATH", "CLUSTER_ID", "PENSTOCK_HTTP_LISTEN", "PENSTOCK_PURE")
    environ = {name: given[name] for name in kept if name in given}
    with started({**environ, "PENSTOCK_CONFIG": str(file)}, tmp_path):
        state = awaited(tmp_path / "volume")
        assert (state.broker_id, state.cluster_id) == (7, CLUSTER)
        assert (tmp_path / "volume" / "logs" / "meta.properties").exists()


def test_a_custom_listener_is_advertised(tmp_path: Path) -> None:
    """The default advertised address localhost:9092 applies only to the image's default
    listener.
    """
    environ = environment(tmp_path / "volume", free_ports(3))
    (port,) = free_ports(1)
    environ = {
        name: text
        for name, text in environ.items()
        if not name.startswith("KAFKA_") or name == "KAFKA_LOG_DIRS"
    } | {"KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}"}
    with started(environ, tmp_path):
        assert awaited(tmp_path / "volume").bootstrap == f"127.0.0.1:{port}"


def awaited(volume: Path) -> BrokerState:
    deadline = time.monotonic() + 60
    while (state := read_state(volume)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return state


def test_the_entry_point_is_plain_shell() -> None:
    checker = shutil.which("dash") or "/bin/sh"
    assert subprocess.run([checker, "-n", ENTRY_POINT], check=False).returncode == 0
