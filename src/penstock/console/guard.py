"""Authorises every request before its route runs; anything without an explicit role is refused."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.clock import Clock
from penstock.console.login_limit import LoginLimit
from penstock.console.rights import LEAST
from penstock.console.session import COOKIE, Sessions
from penstock.http.access import ANYBODY, Denied, HttpAccess, check_local, is_of_another_site
from penstock.http.message import HttpRequest
from penstock.http.users import Role, User

POLICY: Final = (
    b"default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    b"form-action 'self'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Pages load nothing from other sites, cannot be framed by them, and are not cached."""
CSRF_HEADER: Final = "x-csrf-token"
READING: Final = {"GET", "HEAD"}
API: Final = "/api/"


@dataclass(frozen=True, slots=True)
class Asker:
    """The sender of a request, in `request.state.asker`. `user` is None if there was no login."""

    user: User | None
    address: str
    cookie: str
    csrf: str
    still: Callable[[], Awaitable[bool]]
    """Checks again that the login is still valid; long-running responses call it repeatedly."""
    is_read_only: bool = False
    """Whether the console is read-only: then no user may do more than a viewer."""

    @property
    def name(self) -> str:
        return "nobody" if self.user is None else self.user.name

    def may(self, role: str) -> bool:
        """Whether a template should show an action. The guard decides what is really allowed."""
        least = Role[role]
        if self.is_read_only and least > Role.VIEWER:
            return False
        return self.user is not None and self.user.role >= least


class Gate:
    """State that the guard and the login page share: users, sessions, failed logins."""

    def __init__(self, access: HttpAccess, clock: Clock, *, is_behind_tls: bool = False) -> None:
        self.access, self.clock = access, clock
        self.sessions = Sessions(secrets.token_bytes(32))
        self.limit = LoginLimit()
        self._is_behind_tls = is_behind_tls

    def is_secure(self, request: Request) -> bool:
        """Whether the browser uses TLS, possibly through a proxy; cookies then get
        the `Secure` attribute.
        """
        return self._is_behind_tls or request.url.scheme == "https"


class Guard:
    """Matches the route as the router will, and checks the user against its role in `LEAST`."""

    def __init__(self, app: ASGIApp, gate: Gate, routes: Sequence[Route | Mount]) -> None:
        self._app, self._gate, self._routes = app, gate, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # web sockets are not served

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            asker = await self._admitted(scope)
        except Denied as denied:
            await refusal(scope, denied)(scope, receive, safely)
            return
        scope.setdefault("state", {})["asker"] = asker
        await self._app(scope, receive, safely)

    async def _admitted(self, scope: Scope) -> Asker:
        asked = Request(scope)
        given = HttpRequest(
            asked.method, scope["path"], scope["query_string"].decode("latin-1"), asked.headers
        )
        address = asked.client.host if asked.client else ""
        by_header = "authorization" in asked.headers
        cookie = "" if by_header else asked.cookies.get(COOKIE, "")
        user = (
            await self._by_header(given, address) if by_header else self._by_cookie(given, cookie)
        )
        if user is None or not self._gate.access.needs_login:
            cookie = ""  # without a valid login the cookie proves nothing
        if asked.method not in READING:
            self._check_own_page(given, cookie, by_header=by_header)
        route = self._matching(scope)
        if route is None:  # an unknown path: only logged-in users learn that it does not exist
            needed: Role | None = Role.VIEWER
        elif route in LEAST:
            needed = LEAST[route]
        else:
            raise Denied(HTTPStatus.FORBIDDEN, f"{route} has no role: it is refused to everyone")
        if needed is not None:
            if user is None:
                raise Denied(HTTPStatus.UNAUTHORIZED, "log in first")
            self._gate.access.check_role(user, needed)

        async def still() -> bool:
            try:
                if by_header:
                    return await self._gate.access.user(given) == user
                return self._by_cookie(given, cookie) == user
            except Denied:
                return False

        csrf, is_read_only = self._gate.sessions.csrf(cookie), self._gate.access.read_only
        return Asker(user, address, cookie, csrf, still, is_read_only)

    async def _by_header(self, given: HttpRequest, address: str) -> User:
        """The user of an Authorization header. Only Basic is rate-limited: tokens are too
        long to guess.
        """
        gate, now_ms = self._gate, self._gate.clock.monotonic_ms()
        if not given.headers["authorization"].lower().startswith("basic"):
            return await gate.access.user(given)
        if wait_ms := gate.limit.wait_ms(address, None, now_ms):
            raise too_many(wait_ms)
        gate.limit.tried(address, None, now_ms)
        try:
            user = await gate.access.user(given)
        except Denied as denied:
            if denied.status != HTTPStatus.UNAUTHORIZED:
                gate.limit.passed(address, None, now_ms)
            raise
        gate.limit.passed(address, None, now_ms)
        return user

    def _by_cookie(self, given: HttpRequest, cookie: str) -> User | None:
        gate = self._gate
        if not gate.access.needs_login:
            check_local(given)
            return ANYBODY
        known = gate.access.known(gate.sessions.name(cookie))
        if known is None or not gate.sessions.holds(cookie, known[1], gate.clock.now_ms()):
            return None
        return known[0]

    def _check_own_page(self, given: HttpRequest, cookie: str, *, by_header: bool) -> None:
        """Refuse cross-site requests: another site can make a browser send requests, but cannot
        read our CSRF token.
        """
        if is_of_another_site(given):
            text = "a page of another site may not change anything"
            raise Denied(HTTPStatus.FORBIDDEN, text)
        if by_header:
            # only Basic is added by browsers themselves, and the Origin check above covers that
            return
        if not self._gate.sessions.is_csrf(given.headers.get(CSRF_HEADER, ""), cookie):
            raise Denied(
                HTTPStatus.FORBIDDEN,
                f"the header {CSRF_HEADER} is missing or old: load the page again, or see "
                "csrf_token of /api/v1/session",
            )

    def _matching(self, scope: Scope) -> str | None:
        """The first route that matches fully, which is the one that the router will use."""
        for each in self._routes:
            if each.matches(scope)[0] is Match.FULL:
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                return f"{method} {each.path}"
        return None


def too_many(wait_ms: int) -> Denied:
    seconds = -(-wait_ms // 1000)
    return Denied(HTTPStatus.TOO_MANY_REQUESTS, f"too many failed logins: try again in {seconds} s")


def refusal(scope: Scope, denied: Denied) -> Response:
    """The response to a denied request: JSON for the API, the login page for pages."""
    asked = Request(scope)
    is_api = scope["path"].startswith(API)
    if denied.status == HTTPStatus.UNAUTHORIZED and not is_api:
        if asked.headers.get("hx-request"):
            return Response(status_code=denied.status, headers={"HX-Redirect": "/login"})
        if asked.method in READING:
            target = asked.url.path + (f"?{asked.url.query}" if asked.url.query else "")
            return RedirectResponse(f"/login?next={quote(target, safe='')}", HTTPStatus.SEE_OTHER)
    if not is_api:
        return PlainTextResponse(f"{denied}\n", denied.status)
    asks = denied.status == HTTPStatus.UNAUTHORIZED
    headers = {"WWW-Authenticate": 'Basic realm="Penstock"'} if asks else None
    body = msgspec.json.encode({"error": str(denied)})
    return Response(body, denied.status, headers, "application/json")


async def unrouted(request: Request, error: Exception) -> Response:
    """The response to errors outside of routes: unknown path or method, body too long. JSON for
    scripts; forms show the plain text.
    """
    assert isinstance(error, HTTPException)
    is_form = "hx-request" in request.headers
    if is_form or not request.url.path.startswith(API):
        return PlainTextResponse(error.detail, error.status_code, error.headers)
    body = msgspec.json.encode({"error": error.detail})
    return Response(body, error.status_code, error.headers, "application/json")
