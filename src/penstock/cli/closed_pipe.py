"""Notices that the reader of standard output has closed it, even while nothing is written."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EPIPE


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """Run the body in the current task; raise BrokenPipeError once the reader closes the pipe.

    Otherwise `consume --follow | head -1` would wait for the next record, perhaps forever.
    """
    number = _pipe()
    if number is None:
        yield
        return
    loop, task, left = asyncio.get_running_loop(), asyncio.current_task(), False
    assert task is not None

    def leave() -> None:
        nonlocal left
        left = True
        loop.remove_reader(number)
        task.cancel()

    # the writing end is never readable, but the loop reports its errors here
    loop.add_reader(number, leave)
    try:
        yield
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE)) from None
    finally:
        loop.remove_reader(number)


def _pipe() -> int | None:
    """The descriptor of standard output if it is a pipe. Files are always ready, and so is a
    terminal when there is input.
    """
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except OSError:  # a stream without a descriptor
        return None
