"""The persistent name of one copy of an application.

With it, a restart ends the transaction that a crash left open; without it, the transaction would
end by its time-out. Names are stored in files: a process takes the first file that no other has
locked, and the kernel unlocks the file of a process that was killed.
"""

import fcntl
import logging
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote
from uuid import uuid4

logger = logging.getLogger(__name__)

_NAME: Final = re.compile(rb"[0-9a-f]{32}")


def default_folder() -> Path:
    """The state folder for a user's programs, by the XDG base directories."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "penstock" / "sdk"


class Instance:
    """Reserves the name for this process until `close`."""

    def __init__(self, folder: Path | None, group: str) -> None:
        self._opened: int | None = None
        self.name = uuid4().hex
        try:
            own = (folder or default_folder()) / quote(group, safe="")
            own.mkdir(parents=True, exist_ok=True)
            self._opened = _locked(own)
            self.name = _kept(self._opened, self.name)
        except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
            logger.warning(
                "no name for this copy of the application can be kept (%s): a transaction that a "
                "crash leaves open will end by its time-out; see App(instance=...)",
                error,
            )

    def close(self) -> None:
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None


def _locked(folder: Path) -> int:
    number = 1
    while True:
        opened = os.open(folder / f"instance-{number}", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            number += 1
        else:
            return opened


def _kept(opened: int, made: str) -> str:
    """The name in the file; a name that a crash left half written is replaced."""
    found = os.pread(opened, 64, 0)
    if _NAME.fullmatch(found):
        return found.decode()
    os.ftruncate(opened, 0)
    os.pwrite(opened, made.encode(), 0)
    os.fsync(opened)
    return made
