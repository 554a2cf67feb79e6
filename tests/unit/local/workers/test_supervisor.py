"""Workers survive a short lack of resources on the machine, and all of them stop together."""

import errno
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from penstock.errors import ConfigError
from penstock.local.workers import supervisor as module
from penstock.local.workers.child import Channel, ProcessReport, fork
from penstock.local.workers.supervisor import Supervisor


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    numbers = (signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM)
    before = {each: signal.getsignal(each) for each in numbers}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def ends_at_once(channel: Channel) -> None:
    channel.send(ProcessReport())


def test_a_fork_that_fails_is_repeated_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forks = 0

    def sometimes(run: Callable[[Channel], None], life: tuple[int, int]) -> tuple[int, int]:
        nonlocal forks
        forks += 1
        if forks == 2:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return fork(run, life)

    monkeypatch.setattr(module, "fork", sometimes)
    back: list[int] = []

    def is_back() -> None:
        back.append(forks)
        os.kill(os.getpid(), signal.SIGUSR1)

    supervisor = Supervisor({"worker 0": ends_at_once}, [signal.SIGUSR1], is_back)
    assert supervisor.start(["worker 0"])
    supervisor.run()
    supervisor.stop(["worker 0"])
    assert back[0] == 3  # it may have started once more before the signal arrived
    assert "it cannot be started: Resource temporarily unavailable" in caplog.text


def test_a_process_signalled_while_it_is_forked_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the supervisor's handler it would miss the signal, and run until it is killed."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    reported, life, real_fork = os.pipe(), os.pipe(), os.fork

    def slow_fork() -> int:
        pid = real_fork()
        if not pid:
            os.read(reported[0], 1)
        return pid

    monkeypatch.setattr(os, "fork", slow_fork)
    pid, incoming = fork(ends_at_once, life)
    os.kill(pid, signal.SIGTERM)
    os.write(reported[1], b".")
    _, status = os.waitpid(pid, 0)
    for fd in (*reported, *life, incoming):
        os.close(fd)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_process_that_is_not_restarted_does_not_delay_the_others_while_they_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: Channel) -> None:
        raise ConfigError("it cannot start")

    def stays(channel: Channel) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        channel.send(ProcessReport())
        while True:
            signal.pause()

    supervisor = Supervisor({"fails": fails, "stays": stays}, [], lambda: None)
    assert supervisor.start(["stays"])
    with pytest.raises(ConfigError, match="it cannot start"):
        supervisor.start(["fails"])
    turns, real_waitpid = 0, os.waitpid

    def counted(pid: int, options: int) -> tuple[int, int]:
        nonlocal turns
        turns += 1
        return real_waitpid(pid, options)

    monkeypatch.setattr(os, "waitpid", counted)
    supervisor.stop(["stays"], seconds=0.5)
    assert turns < 20


def test_a_process_ended_by_an_unnamed_signal_is_restarted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unnamed = signal.SIGRTMIN + 6
    started = 0

    def is_ended(channel: Channel) -> None:
        channel.send(ProcessReport())
        os.kill(os.getpid(), unnamed)

    def is_back() -> None:
        nonlocal started
        started += 1
        os.kill(os.getpid(), signal.SIGUSR1)

    supervisor = Supervisor({"worker 0": is_ended}, [signal.SIGUSR1], is_back)
    assert supervisor.start(["worker 0"])
    supervisor.run()
    supervisor.stop(["worker 0"])
    assert started
    assert f"it was ended by signal {unnamed}" in caplog.text


def test_as_init_of_a_container_the_supervisor_leaves_no_zombies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orphan = os.fork()
    if not orphan:
        os._exit(0)
    os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)

    def stays(channel: Channel) -> None:
        channel.send(ProcessReport())
        signal.pause()

    monkeypatch.setattr(module, "INIT", os.getpid())
    supervisor = Supervisor({"stays": stays}, [], lambda: None)
    assert supervisor.start(["stays"])
    supervisor.stop(["stays"])
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan, 0)
