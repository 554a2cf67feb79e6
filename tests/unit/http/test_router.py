"""Which route a path means."""

from http import HTTPStatus

import pytest

from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.router import HttpRoute, Router


def handler(_: HttpRequest, __: object) -> HttpResponse:
    return plain(HTTPStatus.OK)


ROUTER = Router(
    [
        HttpRoute("GET", "/", handler),
        HttpRoute("GET", "/a/fixed", handler),
        HttpRoute("GET", "/a/{name}", handler),
        HttpRoute("DELETE", "/a/{name}", handler),
        HttpRoute("GET", "/a/{name}/b/{number}", handler),
    ]
)


@pytest.mark.parametrize(
    ("asked", "path", "variables"),
    [
        ("GET /", "/", {}),
        ("HEAD /a/x", "/a/{name}", {"name": "x"}),
        ("GET /a/fixed", "/a/fixed", {}),
        ("GET /a/x/", "/a/{name}", {"name": "x"}),
        ("GET /a/x%2Fy%20z", "/a/{name}", {"name": "x/y z"}),
        ("GET /a/x/b/7", "/a/{name}/b/{number}", {"name": "x", "number": "7"}),
    ],
)
def test_a_path_with_variables_is_matched(asked: str, path: str, variables: dict[str, str]) -> None:
    method, target = asked.split(" ")
    found = ROUTER.match(HttpRequest(method, target, "", {}))
    assert not isinstance(found, HttpResponse)
    assert (found[0].path, found[1]) == (path, variables)


@pytest.mark.parametrize(
    ("asked", "status"),
    [("GET /b", 404), ("GET /a//b/7", 404), ("GET /a/x/b", 404), ("POST /a/x", 405)],
)
def test_other_paths_have_no_route(asked: str, status: int) -> None:
    method, target = asked.split(" ")
    found = ROUTER.match(HttpRequest(method, target, "", {}))
    assert isinstance(found, HttpResponse)
    assert found.status == status
    if status == 405:
        assert found.headers == {"Allow": "DELETE, GET"}
