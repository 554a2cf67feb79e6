"""Simulated machines whose disks fail or are slow and whose clocks jump, unknown to the brokers.

A small library (interposed.c) stands between each broker and the C library. It reads its
instructions from a file that this process changes: all threads of that broker see a change at the
same moment.
"""

import errno
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from peers.penstock_cluster import PenstockCluster

LAYOUT = struct.Struct("iiqii")
SOURCE = Path(__file__).with_name("interposed.c")


def unusable() -> str | None:
    """The reason why such machines cannot be simulated here; None if they can."""
    return None if shutil.which("cc") else "there is no C compiler"


class MachineCluster(PenstockCluster):
    """A cluster whose brokers are each on a machine that can misbehave: `cluster.machine(0, …)`."""

    def environ(self, broker: int) -> Mapping[str, str]:
        library = self.folder / "interposed.so"
        if not library.exists():
            words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
            subprocess.run(words, check=True)
        self._set(broker)
        return {"LD_PRELOAD": str(library), "PENSTOCK_MACHINE": str(self._file(broker))}

    def _file(self, broker: int) -> Path:
        return self.folder / f"machine-{broker}"

    def _set(
        self, broker: int, *, sync: int = 0, write_us: int = 0, clock_s: int = 0, write: int = 0
    ) -> None:
        with self._file(broker).open("r+b" if self._file(broker).exists() else "w+b") as file:
            file.write(LAYOUT.pack(sync, write_us, clock_s, write, 0))

    @contextmanager
    def failing_sync(self, broker: int) -> Iterator[None]:
        with self._while(broker, sync=errno.EIO):
            yield

    @contextmanager
    def full_disk(self, broker: int) -> Iterator[None]:
        """A write gets as far as half of its data, and no further."""
        with self._while(broker, write=errno.ENOSPC):
            yield

    @contextmanager
    def slow_disk(self, broker: int, write_us: int) -> Iterator[None]:
        with self._while(broker, write_us=write_us):
            yield

    @contextmanager
    def other_time(self, broker: int, clock_s: int) -> Iterator[None]:
        with self._while(broker, clock_s=clock_s):
            yield

    @contextmanager
    def _while(self, broker: int, **what: int) -> Iterator[None]:
        self._set(broker, **what)
        try:
            yield
        finally:
            self._set(broker)
