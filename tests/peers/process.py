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
    """A peer did not do what it was started for; the text ends with its last words."""


class Process:
    """A server that can be started, ended and started again in the same folder.

    Start it from a thread that outlives it: the kernel ends it together with its starter, so
    that no server is left behind by a killed test run.
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
        """Return once `ready()`; fail with the last output when the process ends or time is up."""

        def done() -> bool:
            if not self.running:
                raise PeerError(f"{self.name} ended early\n{last_lines(self.output)}")
            return ready()

        try:
            wait_until(done, timeout_s, f"{self.name} to become ready")
        except TimeoutError as late:
            raise PeerError(f"{late}\n{last_lines(self.output)}") from late

    def terminate(self) -> None:
        """Ask it to end, without waiting: several peers stop faster side by side."""
        if self._popen is not None:
            self._popen.terminate()

    def stop(self, timeout_s: float = 30) -> None:
        """SIGTERM, and SIGKILL when that does not help in time."""
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
    """What to put before a command, so that the kernel ends it together with us."""
    setpriv = shutil.which("setpriv")  # Linux; elsewhere a killed run leaves its servers behind
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
    """Loopback ports that nobody holds, below those the kernel hands to outgoing connections.

    A port from that upper range could be taken by any client before the server binds it. No
    other test process on this machine is given them while this one lives.
    """
    # Not the seeded dice: runs with the same seed would meet at the same ports.
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
    """The first of so many ports in a row, as `free_ports`."""
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
    """A file whose locked bytes are the ports in use; the kernel unlocks them with a process."""
    path = Path(tempfile.gettempdir(), f"penstock-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
