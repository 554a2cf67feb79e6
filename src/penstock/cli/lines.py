"""Reads lines from a file, pipe or terminal as they arrive."""

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

from penstock.record_view.record_input import LONGEST_BYTES

CHUNK_BYTES = 1 << 20


async def lines(file: BinaryIO, longest: int = LONGEST_BYTES) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines that have arrived, without line ends, until the end of the input.

    An overlong line is cut one byte after the limit, so that a file without line ends does not fill
    the memory. Ctrl-C interrupts the wait for input, which a blocking read in a thread would
    prevent.
    """
    begun = bytearray()
    while True:
        await _readable(file)
        chunk = file.read1(CHUNK_BYTES)  # type: ignore[attr-defined]  # every buffered file has it
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        begun += first[: longest + 1 - len(begun)]
        if others:
            *whole, rest = others
            yield [bytes(begun), *whole]
            begun = bytearray(rest)
    if begun:
        yield [bytes(begun)]


async def _readable(file: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    try:
        number = file.fileno()
        loop.add_reader(number, ready.set_result, None)
    except OSError:  # a disk file, which is always readable
        return
    try:
        await ready
    finally:
        loop.remove_reader(number)
