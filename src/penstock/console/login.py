"""The login page, and logout."""

import secrets
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from penstock.console.audit import Audit
from penstock.console.body import read_body
from penstock.console.guard import Asker, Gate, too_many
from penstock.console.session import COOKIE, SESSION_MS

LONGEST: Final = 65
"""The longest user name. Longer ones are cut, because names of failed logins are kept in memory."""


class BrowserLogin:
    """Creates and ends browser sessions."""

    def __init__(
        self, gate: Gate, templates: Environment, audit: Audit, *, has_provider: bool = False
    ) -> None:
        self._gate, self._templates, self._audit = gate, templates, audit
        self._has_provider = has_provider

    def routes(self) -> list[Route]:
        return [
            Route("/login", self.page, methods=["GET"]),
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        target = own_page(request.query_params.get("next", ""))
        if not self._gate.access.needs_login:
            return RedirectResponse(target, HTTPStatus.SEE_OTHER)
        asker: Asker = request.state.asker
        html = self._templates.get_template("login.html").render(
            next=target, csrf=asker.csrf, has_provider=self._has_provider
        )
        return HTMLResponse(html)

    async def login(self, request: Request) -> Response:
        """Handle the login form. htmx shows an error in the page and follows HX-Redirect."""
        form = parse_qs((await read_body(request)).decode("utf-8", "replace"))
        name, password, target = (form.get(each, [""])[0] for each in ("name", "password", "next"))
        name = name[:LONGEST]
        gate, asker = self._gate, request.state.asker
        if not gate.access.needs_login:
            return Response(headers={"HX-Redirect": own_page(target)})
        tried_ms = gate.clock.monotonic_ms()
        if wait_ms := gate.limit.wait_ms(asker.address, name, tried_ms):
            denied = too_many(wait_ms)
            return self._refused(denied.status, f"{denied}.")
        gate.limit.tried(asker.address, name, tried_ms)
        user = await gate.access.login(name, password)
        known = gate.access.known(name)
        if user is None or known is None:
            self._audit.add(name, asker.address, "login", {}, "refused")
            return self._refused(HTTPStatus.UNAUTHORIZED, "Wrong name or password.")
        gate.limit.passed(asker.address, name, tried_ms)
        self._audit.add(name, asker.address, "login", {}, "ok")
        response = Response(headers={"HX-Redirect": own_page(target)})
        return start_session(response, gate, request, name, known[1])

    async def logout(self, request: Request) -> Response:
        asker: Asker = request.state.asker
        if asker.cookie:
            self._gate.sessions.end(asker.cookie, self._gate.clock.now_ms())
        response = Response(headers={"HX-Redirect": "/login"})
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    def _refused(self, status: HTTPStatus, text: str) -> Response:
        return HTMLResponse(self._templates.get_template("refused.html").render(text=text), status)


def start_session(
    response: Response, gate: Gate, request: Request, name: str, proof: str
) -> Response:
    """The response, with the cookie of a new session for this user."""
    cookie = gate.sessions.start(name, proof, secrets.token_hex(16), gate.clock.now_ms())
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=SESSION_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=gate.is_secure(request),
    )
    return response


def own_page(target: str) -> str:
    """`target` if it is a page of the console, else "/". A leading double slash would name another
    host. Only printable ASCII is allowed: `target` goes into a header, and browsers percent-encode
    the rest.
    """
    is_path = target.startswith("/") and target[1:2] not in {"/", "\\"}
    return target if is_path and target.isascii() and target.isprintable() else "/"
