"""A long-lived program that answers each line with one line."""

import os
import select
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from peers.process import PeerError, last_lines


class LineProcess:
    """Runs until its input ends; whatever it prints besides its answers goes to a file."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-lines-")
        self._stderr = Path(self._folder.name, "stderr")
        self._unread = bytearray()
        self._asking = Lock()
        with self._stderr.open("wb") as stderr:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask(self, line: str, timeout_s: float = 30) -> str:
        """Sends a line and waits for the line that answers it."""
        assert "\n" not in line, "one question is one line"
        assert self._popen.stdin is not None
        with self._asking:
            try:
                self._popen.stdin.write(line.encode() + b"\n")
                self._popen.stdin.flush()
            except BrokenPipeError as broken:
                raise self._failed("ended early") from broken
            return self._read_line(timeout_s)

    def _read_line(self, timeout_s: float) -> str:
        assert self._popen.stdout is not None
        fd, searched = self._popen.stdout.fileno(), 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if not select.select([fd], [], [], timeout_s)[0]:
                raise self._failed(f"gave no answer in {timeout_s:g} s")
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                raise self._failed("ended early")
            self._unread += chunk
        line = self._unread[:end].decode()
        del self._unread[: end + 1]
        return line

    def _failed(self, how: str) -> PeerError:
        return PeerError(f"{self._name} {how}\n{last_lines(self._stderr)}")

    def close(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
