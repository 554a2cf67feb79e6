"""A Penstock broker in a separate process, as `penstock serve` starts it."""

import os
import re
import sys
from pathlib import Path

from peers.process import Process
from peers.servers import Servers

SOURCE = Path(__file__).parents[2] / "src"


class PenstockBroker(Servers):
    """`with PenstockBroker() as penstock: penstock.bootstrap`; it uses a free port by default."""

    def __init__(
        self,
        *options: str,
        folder: Path | None = None,
        timeout_s: float = 120,
        source: Path = SOURCE,
    ) -> None:
        super().__init__(folder, timeout_s)
        self._options, self._source = options, source

    @property
    def bootstrap(self) -> str:
        """The address of its latest start."""
        return self._ready()[-1]

    @property
    def directory(self) -> Path:
        """The directory given as `--dir`."""
        return self.folder / "broker-0" / "data"

    def data_dir(self, broker: int = 0) -> Path:  # noqa: ARG002 - there is one
        """The log directory."""
        return self.directory / "logs"

    def start(self, *numbers: int) -> None:
        self._starts = len(self._ready()) + 1
        super().start(*numbers)

    def _answers(self, number: int) -> bool:  # noqa: ARG002 — there is one
        return len(self._ready()) >= self._starts

    def _ready(self) -> list[str]:
        output = self.output(0)
        printed = output.read_text(errors="replace") if output.exists() else ""
        return re.findall(r"^ready (\S+:\d+)$", printed, re.MULTILINE)

    def _prepared(self) -> dict[int, Process]:
        folder = self.directory.parent
        folder.mkdir(parents=True, exist_ok=True)
        serve = [sys.executable, "-m", "penstock", "serve", "--port", "0"]
        serve += ["--dir", str(self.directory), *self._options]
        path = os.environ.get("PYTHONPATH", "")
        command = ["env", f"PYTHONPATH={self._source}{os.pathsep}{path}", *serve]
        return {0: Process("Penstock", command, folder)}
