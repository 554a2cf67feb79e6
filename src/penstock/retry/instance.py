"""The persistent name of a delay service, stored in a folder.

With it, a restart ends the transaction that a crash left open.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from penstock.errors import ConfigError

ENDING_S: Final = 3.0
"""How long to wait for a locked name: a service without its broker ends within a second."""
LOOK_S: Final = 0.05
_NAME: Final = re.compile(r"[0-9a-f]{32}")


@contextmanager
def instance_of(folder: Path) -> Iterator[str]:
    """A name that no other process uses meanwhile: the first free one in the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = _locked(folder)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}") from None
    try:
        yield _name(opened, folder)
    finally:
        os.close(opened)


def _locked(folder: Path) -> int:
    number, end_s = 1, time.monotonic() + ENDING_S
    while True:
        file = folder / ("instance" if number == 1 else f"instance-{number}")
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            if time.monotonic() < end_s:
                time.sleep(LOOK_S)
            else:
                number += 1
        else:
            return opened


def _name(opened: int, folder: Path) -> str:
    """The name in the file; a half-written file, left by a crash, counts as empty."""
    try:
        found = os.pread(opened, 64, 0).decode("ascii", "replace").strip()
        if not _NAME.fullmatch(found):
            found = uuid4().hex
            os.ftruncate(opened, 0)
            os.pwrite(opened, found.encode(), 0)
            os.fsync(opened)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}") from None
    return found
