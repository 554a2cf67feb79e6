"""The driver's JVM when it exits by itself; another program stands in for it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from penstock.spark.pipeline.driver_process import DriverProcess
from penstock.spark.pipeline.failure import PipelineFailed


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as started:
        yield started
        started.kill()


def session() -> SimpleNamespace:
    """The used part of a session: a client that may retry for as long as it likes."""
    policies = [SimpleNamespace(can_retry=lambda error: isinstance(error, OSError))]
    return SimpleNamespace(client=SimpleNamespace(get_retry_policies=lambda: policies))


def test_a_client_retries_only_while_the_jvm_lives(process: subprocess.Popen[bytes]) -> None:
    jvm, found, called = DriverProcess(process), session(), []
    jvm.retry_while_alive(found)
    (policy,) = found.client.get_retry_policies()
    assert (policy.can_retry(OSError()), policy.can_retry(ValueError())) == (True, False)
    jvm.while_alive(lambda: called.append(1))
    process.kill()
    process.wait()
    assert not policy.can_retry(OSError())
    jvm.while_alive(lambda: called.append(2))
    assert called == [1]


def test_a_lost_jvm_is_the_reason_whatever_the_error_says(process: subprocess.Popen[bytes]) -> None:
    jvm = DriverProcess(process)
    with pytest.raises(ValueError, match="bad row"), jvm.told_if_lost():
        raise ValueError("bad row")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(PipelineFailed, match="JVM was ended by SIGKILL"), jvm.told_if_lost():
        raise OSError("connection refused")


def test_an_exit_code_is_reported(process: subprocess.Popen[bytes]) -> None:
    process.communicate(b"")  # no line to read, so it fails
    with pytest.raises(PipelineFailed, match="exit code 1"), DriverProcess(process).told_if_lost():
        raise OSError("connection refused")
