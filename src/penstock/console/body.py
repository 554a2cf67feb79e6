"""Reads a request body, up to a limit of size and of time."""

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

LARGEST: Final = 1 << 20
LEAST_S: Final = 30.0
SLOWEST_BYTES_S: Final = 1 << 20
"""A body may take so long to arrive: a time, and more for the size that is allowed."""


async def read_body(request: Request, largest: int = LARGEST) -> bytes:
    """Raises HTTP 413 for a longer body, 408 if it does not arrive in time; never holds more than
    `largest` bytes in memory.
    """
    parts, size = [], 0
    try:
        async with asyncio.timeout(LEAST_S + largest / SLOWEST_BYTES_S):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    text = f"the body is longer than {largest} bytes"
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
                parts.append(part)
    except TimeoutError:
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive") from None
    return b"".join(parts)
