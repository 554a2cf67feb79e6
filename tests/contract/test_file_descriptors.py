"""A broker without a free file descriptor continues quietly, and recovers."""

import os
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from peers.penstock import PenstockBroker
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from support.brokers.wire_link import WireLink

SPARE, CLIENTS = 10, 40


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_served(link: WireLink) -> bool:
    return isinstance(link.ask(ApiVersionsRequest("x", "1")), ApiVersionsResponse)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at descriptors in /proc")
def test_a_broker_without_descriptors_serves_its_clients_and_later_accepts_again(
    tmp_path: Path,
) -> None:
    with PenstockBroker(folder=tmp_path) as broker, WireLink(broker.bootstrap) as early:
        assert is_served(early)
        pid = broker.pids[0]
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_files(pid) + SPARE, hard))
        host, _, port = broker.bootstrap.rpartition(":")
        with ExitStack() as stack:
            for _ in range(CLIENTS):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            began, spent = time.monotonic(), cpu_s(pid)
            while time.monotonic() < began + 1.5:
                assert is_served(early)  # one round trip after another, the whole time
                time.sleep(0.05)
            assert cpu_s(pid) - spent < 1.0, "the accept loop spins"
        with WireLink(broker.bootstrap) as late:
            assert is_served(late)
        reported = broker.output(0).read_text(errors="replace").count("pauses accepting")
        assert 0 < reported <= 10
