"""The numbered servers of one peer: what a Kafka cluster and a ZooKeeper ensemble have in
common.
"""

import tempfile
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from peers.process import Process


class Servers(ABC):
    """Servers that start, die and come back individually; a start returns when they answer.

    In a folder of the caller they are stopped cleanly at the end and leave their data behind. In a
    temporary folder there is nothing to save, so they are killed.
    """

    def __init__(self, folder: Path | None, timeout_s: float) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="penstock-") if not folder else None
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self._timeout_s = timeout_s
        self._processes: dict[int, Process] = {}

    @abstractmethod
    def _prepared(self) -> dict[int, Process]:
        """Writes the files that the servers read at their start; does not start them."""

    @abstractmethod
    def _answers(self, number: int) -> bool: ...

    @property
    def running(self) -> set[int]:
        return {number for number, process in self._processes.items() if process.running}

    @property
    def pids(self) -> dict[int, int]:
        """The pids of the running servers."""
        return {number: self._processes[number].pid for number in sorted(self.running)}

    def output(self, number: int) -> Path:
        """The file with everything that this server ever printed."""
        return self._processes[number].output

    def start(self, *numbers: int) -> None:
        """Starts these in parallel, with their data, and waits until each answers."""
        for number in numbers:
            self._processes[number].start()
        for number in numbers:
            ready = partial(self._answers, number)
            self._processes[number].wait_until(ready, self._timeout_s)

    def stop(self, *numbers: int) -> None:
        """Stops these cleanly and together: one by one, a quorum would lose its majority
        and hang.
        """
        for number in numbers:
            self._processes[number].terminate()
        for number in numbers:
            self._processes[number].stop()

    def kill(self, *numbers: int) -> None:
        """Sends SIGKILL: no clean shutdown, nothing flushed by the process itself."""
        for number in numbers:
            self._processes[number].kill()

    def __enter__(self) -> Self:
        try:
            self._processes = self._prepared()
            self.start(*self._processes)
        except BaseException:
            self.kill(*self._processes)
            self._discard()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._temporary is None:
            self.stop(*self.running)
        else:
            self.kill(*self.running)
            self._discard()

    def _discard(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()


def properties(settings: dict[str, object]) -> str:
    """The settings as the lines of a Java properties file."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
