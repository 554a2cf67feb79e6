"""`penstock` on a pseudo-terminal, with typed input."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from support.commands.penstock_command import ENVIRONMENT, PENSTOCK

PATIENCE_S = 60.0


class Session(NamedTuple):
    """The terminal's content, and the exit code."""

    screen: str
    exit_code: int


def typed_session(
    words: Sequence[str], typed: Mapping[str, str], environ: Mapping[str, str]
) -> Session:
    """Runs a command; each key of `typed` is a text, and once it is shown, its value is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PENSTOCK, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**ENVIRONMENT, "TERM": "xterm", **environ},
        start_new_session=True,
    )
    os.close(theirs)
    screen, waiting, deadline = b"", dict(typed), time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            try:
                shown = os.read(ours, 65536)
            except OSError:  # on Linux: the other side is closed
                break
            if not shown:
                break
            screen += shown
            for question in [each for each in waiting if each.encode() in screen]:
                os.write(ours, waiting.pop(question).encode())
    finally:
        os.close(ours)
        if process.poll() is None and time.monotonic() >= deadline:
            process.kill()
    return Session(re.sub("\r+\n", "\n", screen.decode()), process.wait(10))
