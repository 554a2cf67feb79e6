"""One process of a peer: in its own session, its output in a file, ended by its pid."""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path


class PeerError(Exception):
    """A peer did not do what it was started for; the text ends with its last output."""


class Process:
    """A server that can be started, ended and started again in the same folder.

    Start it from a thread that outlives it: the kernel ends it together with the thread that
    started it, so that a killed test run leaves no server behind.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name, self.output = name, folder / "output"
        self._command, self._folder = [*tied_to_us(), *command], folder
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._popen is None:
            raise PeerError(f"{self.name} was not started")
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        if self.running:
            raise PeerError(f"{self.name} runs already")
        with self.output.open("ab") as output:
            self._popen = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Returns once `ready()`; fails with the last output if the process ends or the
        time is up.
        """

        def done() -> bool:
            if not self.running:
                raise PeerError(f"{self.name} ended early\n{last_lines(self.output)}")
            return ready()

        try:
            wait_until(done, timeout_s, f"{self.name} to become ready")
        except TimeoutError as late:
            raise PeerError(f"{late}\n{last_lines(self.output)}") from late

    def terminate(self) -> None:
        """Asks it to end, without waiting: several peers stop faster in parallel."""
        if self._popen is not None:
            self._popen.terminate()

    def stop(self, timeout_s: float = 30) -> None:
        """Sends SIGTERM, and SIGKILL if that does not end it in time."""
        if self._popen is None:
            return
        self._popen.terminate()
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()


def tied_to_us() -> list[str]:
    """A prefix for a command, so that the kernel ends it together with this process."""
    setpriv = shutil.which(
        "setpriv"
    )  # Linux only; elsewhere a killed run leaves its servers behind
    return [setpriv, "--pdeathsig", signal.SIGKILL.name.removeprefix("SIG")] if setpriv else []


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}")
        time.sleep(0.02)


def last_lines(path: Path, count: int = 30) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-count:])


def free_ports(count: int) -> list[int]:
    """Free loopback ports, below the range that the kernel uses for outgoing connections.

    Any client could take a port of that range before the server binds it. No other test process on
    this machine gets these ports while this process lives.
    """
    # Not a seeded generator: runs with the same seed would choose the same ports.
    dice = random.SystemRandom()
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            port = dice.randrange(15_000, 32_000)
            try:
                fcntl.lockf(_reserved(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
        return ports


def free_port_range(count: int) -> int:
    """The first of `count` consecutive free ports, as `free_ports`."""
    dice = random.SystemRandom()
    while True:
        first = dice.randrange(15_000, 32_000 - count)
        with ExitStack() as held:
            try:
                fcntl.lockf(_reserved(), fcntl.LOCK_EX | fcntl.LOCK_NB, count, first)
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first


@cache
def _reserved() -> int:
    """A file whose locked bytes are the ports in use; the kernel unlocks them when a
    process ends.
    """
    path = Path(tempfile.gettempdir(), f"penstock-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
