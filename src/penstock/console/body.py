"""Reads a request body up to a limit."""

from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

LARGEST: Final = 1 << 20


async def read_body(request: Request, largest: int = LARGEST) -> bytes:
    """Raises HTTP 413 for a longer body; never holds more than `largest` bytes in memory."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            text = f"the body is longer than {largest} bytes"
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        parts.append(part)
    return b"".join(parts)
