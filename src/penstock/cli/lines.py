"""Lines of a file, a pipe or a terminal, as they come."""

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20


async def lines(file: BinaryIO) -> AsyncIterator[list[bytes]]:
    """Whatever whole lines have come, without their ends, until the input is at its end.

    Ctrl-C ends the wait for more, which a read on a thread would not let it do.
    """
    rest = b""
    while True:
        await _readable(file)
        chunk = file.read1(CHUNK_BYTES)  # type: ignore[attr-defined]  # every buffered file has it
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            yield whole
    if rest:
        yield [rest]


async def _readable(file: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    try:
        number = file.fileno()
        loop.add_reader(number, ready.set_result, None)
    except OSError:  # a file on a disk, which is always readable
        return
    try:
        await ready
    finally:
        loop.remove_reader(number)
