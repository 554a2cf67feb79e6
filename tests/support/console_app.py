"""Calls the console's application without a server."""

import asyncio
from typing import Any

import msgspec
from starlette.applications import Starlette

LOCAL = {"host": "127.0.0.1:8080"}


class Answer(msgspec.Struct):
    """The response."""

    status: int
    headers: dict[str, str]
    body: bytes


def asked(
    app: Starlette, route: str, headers: dict[str, str], body: bytes = b"", scheme: str = "http"
) -> Answer:
    """`route` is, for example, `GET /topics`."""
    return asyncio.run(answered(app, route, headers, body, scheme))


async def answered(
    app: Starlette, route: str, headers: dict[str, str], body: bytes = b"", scheme: str = "http"
) -> Answer:
    sent: list[dict[str, Any]] = []
    method, _, target = route.partition(" ")
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }
    parts = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await asyncio.Event().wait()  # the client stays connected and sends nothing
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found: dict[str, str] = {}
    for name, value in sent[0]["headers"]:
        before = found.get(name.decode())  # there may be several cookies
        found[name.decode()] = value.decode() if before is None else f"{before}, {value.decode()}"
    return Answer(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))
