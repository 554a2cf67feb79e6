"""Lines of a stream, however it is split into chunks, with bounded memory."""

import asyncio
import io

import pytest

from penstock.cli.lines import CHUNK_BYTES, lines

LONG = CHUNK_BYTES * 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a" * LONG, [b"a" * LONG]),
        (b"a" * LONG + b"\nb", [b"a" * LONG, b"b"]),
        (b"a\n" + b"b" * LONG * 2 + b"\nc\n", [b"a", b"b" * (LONG + 1), b"c"]),
        (b"a" * LONG * 2, [b"a" * (LONG + 1)]),
    ],
    ids=range(8),
)
def test_lines_are_complete_unless_they_are_too_long(given: bytes, expected: list[bytes]) -> None:
    async def read() -> list[bytes]:
        return [line async for some in lines(io.BytesIO(given), LONG) for line in some]

    assert asyncio.run(read()) == expected
