"""`/healthz` and `/readyz`: whether the process is alive, and whether it is ready to serve."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import Handler


def healthz(_: HttpRequest) -> HttpResponse:
    """Always OK: a response shows that the event loop runs."""
    return plain(HTTPStatus.OK)


def readyz(checks: Mapping[str, Callable[[], bool]]) -> Handler:
    """OK if every check passes; else 503 with the names of the failed checks."""

    def handler(_: HttpRequest) -> HttpResponse:
        failed = [name for name, ready in checks.items() if not ready()]
        if failed:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, "not ready: " + ", ".join(failed))
        return plain(HTTPStatus.OK)

    return handler
