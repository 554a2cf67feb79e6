"""Routes with variables in their paths: `/subjects/{subject}/versions`."""

import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeAlias

from penstock.http.message import HttpRequest, HttpResponse, plain

PathHandler: TypeAlias = Callable[
    [HttpRequest, Mapping[str, str]], HttpResponse | Awaitable[HttpResponse]
]
"""Gets the request and the decoded variables of the path."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A method and a path, in which a segment `{name}` matches any non-empty segment."""

    method: str
    path: str
    handler: PathHandler


class Router:
    """Finds the route of a request. A GET route serves HEAD too."""

    def __init__(self, routes: list[HttpRoute]) -> None:
        self._by_length: dict[int, list[tuple[list[str], HttpRoute]]] = {}
        for each in routes:
            parts = each.path.split("/")
            self._by_length.setdefault(len(parts), []).append((parts, each))

    def match(self, request: HttpRequest) -> tuple[HttpRoute, dict[str, str]] | HttpResponse:
        """The route and its variables, or the error response if none matches."""
        method = "GET" if request.method == "HEAD" else request.method
        path = request.path.rstrip("/") or "/"
        parts = path.split("/")
        allowed = []
        for pattern, route in self._by_length.get(len(parts), ()):
            variables = _matched(pattern, parts)
            if variables is None:
                continue
            if route.method == method:
                return route, variables
            allowed.append(route.method)
        if not allowed:
            return plain(HTTPStatus.NOT_FOUND)
        return replace(
            plain(HTTPStatus.METHOD_NOT_ALLOWED), headers={"Allow": ", ".join(sorted(allowed))}
        )


def _matched(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    variables = {}
    for expected, part in zip(pattern, parts, strict=True):
        if expected.startswith("{"):
            if not part:
                return None
            variables[expected[1:-1]] = urllib.parse.unquote(part)
        elif expected != part:
            return None
    return variables
