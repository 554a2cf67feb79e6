"""`penstock serve` as a person or a service manager sees it: one clear line, or `ready`."""

import json
import os
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

from peers.penstock import SOURCE, PenstockBroker
from penstock.process_start import process_start
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.metadata import MetadataRequest

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def penstock(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def refused(*arguments: str, **variables: str) -> str:
    """The one line that a refused call prints."""
    done = penstock("serve", *arguments, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    *before, line = done.stderr.strip().splitlines()
    assert all("warning" in each or " INFO " in each for each in before)
    return line


@contextmanager
def served(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "serve", "--port", "0", *arguments],
        env=ENVIRONMENT | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=20)


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused("--port", port, "--dir", str(tmp_path))
    assert line == f"penstock: listeners: cannot listen on 127.0.0.1:{port}: Address already in use"


def test_a_bad_directory_is_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "file" in refused("--port", "0", "--dir", str(file / "data"))


def test_a_wrong_value_is_reported_with_setting_and_allowed_values(tmp_path: Path) -> None:
    line = refused("--port", "0", "--dir", str(tmp_path), "--set", "num.partitions=many")
    assert "num.partitions" in line
    assert "many" in line


def test_a_wrong_line_of_a_settings_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nlog.segment.bytes=huge\n")
    assert "server.properties:2" in refused(str(file), "--dir", str(tmp_path))


def test_an_unknown_setting_is_a_warning_with_the_nearest_name_or_an_error(tmp_path: Path) -> None:
    misspelt = ("--dir", str(tmp_path), "--set", "log.retention.hour=1")
    assert "log.retention.hours" in refused("--port", "0", "--strict", *misspelt)
    with served(*misspelt) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        process.terminate()
        assert "log.retention.hours" in process.communicate(timeout=20)[1]


def test_a_directory_in_use_is_refused_until_its_broker_is_killed(tmp_path: Path) -> None:
    with served("--dir", str(tmp_path)) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("ready ")
        line = refused("--port", "0", "--dir", str(tmp_path))
        assert f"in use: a broker (pid {first.pid}) runs there" in line
        first.kill()
        first.wait()
        with served("--dir", str(tmp_path)) as second:
            assert second.stdout is not None
            assert second.stdout.readline().startswith("ready ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_the_broker_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with served("--dir", str(tmp_path), "--log-format", "json") as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        state = json.loads((tmp_path / "broker.json").read_text())
        assert (state["pid"], state["bootstrap"]) == (process.pid, ready[1])
        with urlopen(f"http://{state['http']}/healthz") as answer:
            assert answer.status == 200
        process.send_signal(number)
        assert process.wait(20) == 0
    assert not (tmp_path / "broker.json").exists()
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_daemon_is_started_found_and_stopped_by_its_directory(tmp_path: Path) -> None:
    started = penstock("serve", "--daemon", "--port", "0", "--dir", str(tmp_path))
    assert started.returncode == 0, started.stderr
    state = json.loads((tmp_path / "broker.json").read_text())
    assert started.stdout == f"ready {state['bootstrap']}\n"
    assert penstock("stop", "--dir", str(tmp_path)).returncode == 0
    assert process_start(state["pid"]) is None
    again = penstock("stop", "--dir", str(tmp_path))
    assert (again.returncode, "no broker runs here" in again.stderr) == (2, True)


def test_a_daemon_does_not_import_files_of_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('a program of the user')")
    command = [sys.executable, "-P", "-m", "penstock", "serve", "--daemon", "--port", "0"]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert penstock("stop", "--dir", str(tmp_path / "penstock-data")).returncode == 0


def test_stop_does_not_signal_another_process_with_the_brokers_pid(tmp_path: Path) -> None:
    with served("--dir", str(tmp_path)) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith("ready ")
        broker.kill()
        broker.wait()
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with stranger:
        state = json.loads((tmp_path / "broker.json").read_text())
        (tmp_path / "broker.json").write_text(json.dumps(state | {"pid": stranger.pid}))
        done = penstock("stop", "--dir", str(tmp_path))
        assert (done.returncode, "no broker runs here" in done.stderr) == (2, True)
        assert stranger.poll() is None
        stranger.kill()


def test_stop_returns_at_once_if_the_ended_broker_is_not_reaped(tmp_path: Path) -> None:
    """As in a container whose process 1 is no init: the broker remains a zombie."""
    with served("--dir", str(tmp_path)) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith("ready ")
        done = penstock("stop", "--dir", str(tmp_path), "--timeout", "20")
        assert (done.returncode, done.stderr) == (0, "")
        assert broker.returncode is None  # not waited for yet


def test_a_signal_stops_a_broker_that_is_not_ready_yet(tmp_path: Path) -> None:
    """For example while the broker waits for a ZooKeeper that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        settings = ("--set", f"zookeeper.connect={address}")
        patience = ("--set", "zookeeper.connection.timeout.ms=600000")
        with served("--dir", str(tmp_path), *settings, *patience) as broker:
            connection, _ = mute.accept()
            with connection:
                broker.terminate()
                assert broker.wait(20) == 0


def test_a_daemon_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = penstock("serve", "--daemon", "--port", port, "--dir", str(tmp_path))
    assert done.returncode == 2
    line = f"penstock: the broker did not start: listeners: cannot listen on 127.0.0.1:{port}"
    assert done.stderr.startswith(f"{line}: Address already in use (see ")
    assert len(done.stderr.splitlines()) == 1


def test_a_daemons_start_warnings_reach_the_caller(tmp_path: Path) -> None:
    misspelt = ("--set", "log.retention.hour=1")
    started = penstock("serve", "--daemon", "--port", "0", "--dir", str(tmp_path), *misspelt)
    try:
        assert started.returncode == 0
        assert started.stderr == (
            "penstock: warning: --set: unknown setting log.retention.hour; "
            "did you mean log.retention.hours?\n"
        )
    finally:
        assert penstock("stop", "--dir", str(tmp_path)).returncode == 0


def test_settings_come_from_file_environment_and_command_line(tmp_path: Path) -> None:
    """The command line overrides the environment, which overrides a settings file and a profile."""
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.segment.bytes=2097152\nlog.retention.hours=1\n")
    arguments = (str(file), "--dir", str(tmp_path / "d"), "--profile", "classic")
    overrides = ("--set", "num.partitions=4")
    with served(*arguments, *overrides, KAFKA_LOG_SEGMENT_BYTES="3145728") as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().split()[1]
        made = penstock("topic", "create", "t", "--bootstrap", bootstrap)
        assert made.returncode == 0, made.stderr
        reported = penstock("topic", "describe", "t", "--format", "json", "--bootstrap", bootstrap)
        topic = json.loads(reported.stdout.splitlines()[0])
        words = ("config", "describe", "topic", "t", "--all", "--format", "json")
        found = penstock(*words, "--bootstrap", bootstrap)
    assert len(topic["partitions"]) == 4, json.dumps(topic)
    values = {each["name"]: each["value"] for each in map(json.loads, found.stdout.splitlines())}
    assert values["segment.bytes"] == "3145728"  # the environment's, not the file's
    assert values["retention.ms"] == "3600000"  # the file's, not the profile's


def test_the_log_reports_the_brokers_events(tmp_path: Path) -> None:
    log, moves = tmp_path / "logs.d" / "penstock.log", tmp_path / "logs.d" / "state-change.log"
    log.parent.mkdir()
    settings = ("--set", "num.partitions=2", "--log-file", str(log))
    with served("--dir", str(tmp_path / "d"), *settings) as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().split()[1]
        for words in (("create", "t"), ("delete", "t")):
            assert penstock("topic", *words, "--bootstrap", bootstrap).returncode == 0
        host, port = bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as sock:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            assert sock.recv(1) == b""
        process.terminate()
        assert process.communicate(timeout=20) == ("", "")
    assert "with recovery" not in log.read_text(), "there was nothing yet"
    lines = iter(log.read_text().splitlines())
    for reported in (
        "Penstock ",
        f"data directory {tmp_path / 'd'}, log directories {tmp_path / 'd' / 'logs'}",
        "num.partitions=2 (--set)",
        "loaded 0 logs from",
        "broker 1 is the controller",
        f"serves PLAINTEXT://{bootstrap}; HTTP at 127.0.0.1:",
        "created topic t with 2 partitions",
        "deleted topic t",
        "a TLS handshake: this listener speaks plain text",
        "stopping: got SIGTERM",
        "stopped",
    ):
        assert any(reported in line for line in lines), reported
    assert "t-1: this broker leads in epoch 0, ISR [1]" in moves.read_text()


def asked(sock: socket.socket) -> bytes:
    """The answer to a request, or b"" if the connection ends instead."""
    try:
        sock.sendall(request_frame(APIS[3], 1, 1, "limits", MetadataRequest(topics=[])))
        size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
        return sock.recv(size, socket.MSG_WAITALL)
    except OSError:
        return b""


def test_connections_over_the_limits_are_closed_and_slots_are_freed() -> None:
    limits = ("--set", "max.connections.per.ip=3", "--set", "connections.max.idle.ms=600000")
    with PenstockBroker(*limits) as broker, ExitStack() as stack:
        host, port = broker.bootstrap.split(":")

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection((host, int(port)), timeout=5))

        first = [connected() for _ in range(3)]
        assert all(asked(sock) for sock in first)
        assert asked(connected()) == b""
        first[0].close()
        deadline = time.monotonic() + 5
        while not asked(connected()):
            assert time.monotonic() < deadline


def test_a_request_over_socket_request_max_bytes_closes_its_connection() -> None:
    with PenstockBroker("--set", "socket.request.max.bytes=1000") as broker:
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as sock:
            assert asked(sock)
            sock.sendall((1001).to_bytes(4, "big"))
            assert sock.recv(1) == b""
