"""`penstock serve --workers N` in its own process group, whose processes can be killed."""

import os
import signal
from pathlib import Path

from peers.penstock import PenstockBroker
from peers.process import free_port_range, wait_until
from penstock.broker.startup.state_file import BrokerState, read_state

MOST = 4
"""The largest number of workers."""


class PenstockWorkers(PenstockBroker):
    """Workers that keep their port, even after a start with another number of workers."""

    def __init__(self, workers: int, *options: str, folder: Path) -> None:
        self._port = free_port_range(MOST + 1)
        super().__init__("--port", str(self._port), *options, folder=folder, timeout_s=60)
        self._plain = self._options
        self.resize(workers)

    def resize(self, workers: int | None) -> None:
        """Sets the number of workers for the next start; None leaves the option out."""
        chosen = () if workers is None else ("--workers", str(workers))
        self._options = (*self._plain, *chosen)
        if self._processes:
            self._processes = self._prepared()

    @property
    def state(self) -> BrokerState:
        found = read_state(self.directory)
        assert found is not None
        return found

    def worker_pid(self, index: int) -> int:
        return self.state.workers[index].pid

    @property
    def store_pid(self) -> int:
        """The supervisor's only child that is no worker; 0 while there is none."""
        supervisor = self.state.pid
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        return next(iter({*map(int, children)} - {each.pid for each in self.state.workers}), 0)

    def kill_worker(self, index: int) -> None:
        """Kills a worker and waits until it is back."""
        pid = self.worker_pid(index)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.worker_pid(index) != pid, 20, f"worker {index}")

    def kill_store(self) -> None:
        pid = self.store_pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.store_pid not in {0, pid}, 20, "the metadata store")

    def log(self) -> str:
        return self.output(0).read_text(errors="replace")
