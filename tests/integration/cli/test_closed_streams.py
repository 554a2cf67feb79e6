"""Closed standard streams and closed pipes, with real processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.local.process import polls
from penstock.testing.broker import EmbeddedBroker

PENSTOCK = f"{sys.executable} -m penstock"
LIMIT_S = 60.0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_replaced_by_the_null_device(closed: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = (
        "import os, sys; from penstock.cli.failure import fill_closed_streams as fill; fill();"
        "sys.stderr.write('e'); sys.stdin.read();"
        "kinds = [os.fstat(each).st_rdev == os.stat(os.devnull).st_rdev for each in range(3)];"
        f"opened = open({str(seen)!r}, 'w'); opened.write(f'{{opened.fileno() > 2}} {{kinds}}')"
    )
    command = f'"$0" -c "$1" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    above, _, kinds = seen.read_text().partition(" ")
    expected = [True, ">&-" in closed.split(), "2>&-" in closed]
    assert (above, kinds) == ("True", str(expected))


def test_commands_without_streams_end_normally_unless_their_output_is_lost() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        lost = b"penstock: cannot write the output: standard output is closed\n"
        for words, closed, expected in (
            ("produce t", "<&-", (0, b"produced 0 records to t\n")),
            ("consume t", ">&-", (0, b"consumed 0 records of t\n")),
            ("topic list", ">&-", (1, lost)),
            ("topic list", "<&- >&- 2>&-", (1, b"")),
        ):
            line = f"{PENSTOCK} {words} -b {broker.bootstrap}"
            done = subprocess.run(
                ["/bin/sh", "-c", f"{line} {closed}"],
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert (done.returncode, done.stderr) == expected


def test_kafkas_tools_report_that_their_output_is_lost() -> None:
    full, closed = "No space left on device", "standard output is closed"
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        for words, where, reason in (
            ("kafka-topics.sh --list", "> /dev/full", full),
            ("kafka-topics.sh --list", ">&-", closed),
            ("kafka-get-offsets.sh --topic t", "> /dev/full", full),
            ("kafka-topics.sh --list", "<&- >&- 2>&-", None),
        ):
            line = f"{sys.executable} -m penstock.kafka_tools {words}"
            done = subprocess.run(
                ["/bin/sh", "-c", f"{line} --bootstrap-server {broker.bootstrap} {where}"],
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert (done.returncode, done.stdout) == (1, b""), words
            reported = done.stderr.decode().splitlines()
            assert len(reported) == (reason is not None), done.stderr
            assert all(f"cannot write the output: {reason}" in each for each in reported)


def test_a_broker_continues_without_its_standard_output(tmp_path: Path) -> None:
    words = ["serve", "--port", "0", "--dir", str(tmp_path)]
    command = ["/bin/sh", "-c", f'exec {PENSTOCK} "$@" >&-', "sh", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as broker:
        try:
            assert any((tmp_path / "broker.json").exists() for _ in polls(LIMIT_S))
        finally:
            broker.terminate()
        _, reported = broker.communicate(timeout=LIMIT_S)
    assert broker.returncode == 0, reported


def test_following_ends_when_the_output_pipe_closes() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        given = ["-b", broker.bootstrap]
        penstock = [sys.executable, "-m", "penstock"]
        subprocess.run(
            [*penstock, "produce", "t", *given], input=b"first\n", check=True, timeout=LIMIT_S
        )
        reading, writing = os.pipe()
        follower = subprocess.Popen([*penstock, "consume", "t", "-f", *given], stdout=writing)
        os.close(writing)
        assert os.read(reading, 100) == b"first\n"
        os.close(reading)
        try:
            assert follower.wait(LIMIT_S) == 1
        finally:
            follower.kill()
            follower.wait()
