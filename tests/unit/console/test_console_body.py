"""Bodies of requests that do not arrive."""

import asyncio
from http import HTTPStatus

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from penstock.console import body


def test_a_body_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "LEAST_S", 0.05)
    parts: list[Message] = [{"type": "http.request", "body": b"a", "more_body": True}]

    async def receive() -> Message:
        if not parts:
            await asyncio.sleep(60)
        return parts.pop()

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(body.read_body(request, 1000))
    assert refused.value.status_code == HTTPStatus.REQUEST_TIMEOUT
