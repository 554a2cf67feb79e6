"""`/healthz` and `/readyz`: whether the process lives, and whether it can do its work."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from penstock.http.message import Request, Response, plain
from penstock.http.server import Handler


def healthz(_: Request) -> Response:
    """Alive: the loop came round to answer this."""
    return plain(HTTPStatus.OK)


def readyz(checks: Mapping[str, Callable[[], bool]]) -> Handler:
    """Ready when every check says so; else the names of those that do not."""

    def handler(_: Request) -> Response:
        failed = [name for name, ready in checks.items() if not ready()]
        if failed:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, "not ready: " + ", ".join(failed))
        return plain(HTTPStatus.OK)

    return handler
