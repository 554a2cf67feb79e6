"""Login at an identity provider: the redirect to it, and its callback."""

import logging
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from penstock.config.oidc import CALLBACK
from penstock.console.audit import Audit
from penstock.console.guard import Gate, too_many
from penstock.console.login import LONGEST, own_page, start_session
from penstock.console.oidc.attempt import ATTEMPT_MS, COOKIE, Attempts
from penstock.console.oidc.errors import ProviderFailed
from penstock.security.oauthbearer import InvalidToken

if TYPE_CHECKING:  # its libraries are optional
    from penstock.console.oidc.provider import Provider

logger = logging.getLogger(__name__)

START: Final = "/login/oidc"
LONGEST_CODE: Final = 4_096
TRIES: Final = None
"""Login attempts count per address only: the name is unknown before the provider answers."""


class OidcLogin:
    """Starts the same session as a password login, for users with a line `NAME ROLE oidc`."""

    def __init__(
        self, gate: Gate, templates: Environment, audit: Audit, provider: "Provider | None"
    ) -> None:
        self._gate, self._templates, self._audit = gate, templates, audit
        self._provider = provider
        self._attempts = Attempts(secrets.token_bytes(32))

    def routes(self) -> list[Route]:
        return [
            Route(START, self.start, methods=["GET"]),
            Route(CALLBACK, self.callback, methods=["GET"]),
        ]

    async def start(self, request: Request) -> Response:
        page = own_page(request.query_params.get("next", ""))
        if not self._gate.access.needs_login:
            return RedirectResponse(page, HTTPStatus.SEE_OTHER)
        if self._provider is None:
            return self._refused(HTTPStatus.NOT_FOUND, "There is no identity provider here.")
        now_ms = self._gate.clock.now_ms()
        attempt, cookie = self._attempts.begin(page, secrets.token_hex(32), now_ms)
        try:
            url = await self._provider.login_url(attempt)
        except ProviderFailed as error:
            return self._failed(error)
        response = RedirectResponse(url, HTTPStatus.SEE_OTHER)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=ATTEMPT_MS // 1000,
            path=START,
            httponly=True,
            samesite="lax",  # the browser comes back from another site
            secure=self._gate.is_secure(request),
        )
        return response

    async def callback(self, request: Request) -> Response:
        """Complete a login. The attempt's cookie is always deleted, so an attempt is used once."""
        if not self._gate.access.needs_login:
            return RedirectResponse("/", HTTPStatus.SEE_OTHER)
        response = await self._answered(request)
        response.delete_cookie(COOKIE, START, httponly=True, samesite="lax")
        return response

    async def _answered(self, request: Request) -> Response:
        gate, asker, given = self._gate, request.state.asker, request.query_params
        if self._provider is None:
            return self._refused(HTTPStatus.NOT_FOUND, "There is no identity provider here.")
        attempt = self._attempts.found(
            request.cookies.get(COOKIE, ""), given.get("state", ""), gate.clock.now_ms()
        )
        if attempt is None:
            text = "This login was not begun here, or too long ago. Please begin again."
            return self._refused(HTTPStatus.BAD_REQUEST, text)
        tried_ms = gate.clock.monotonic_ms()
        if wait_ms := gate.limit.wait_ms(asker.address, TRIES, tried_ms):
            denied = too_many(wait_ms)
            return self._refused(denied.status, f"{denied}.")
        gate.limit.tried(asker.address, TRIES, tried_ms)
        code = given.get("code", "")
        if "error" in given or not code or len(code) > LONGEST_CODE:
            self._audit.add("", asker.address, "login", {"by": "oidc"}, "refused")
            text = "The identity provider has refused the login."
            return self._refused(HTTPStatus.UNAUTHORIZED, text)
        try:
            name = await self._provider.name(attempt, code, given.get("iss"))
        except ProviderFailed as error:
            return self._failed(error)
        except InvalidToken as error:
            logger.warning("a login by OpenID Connect is refused: %s", error)
            self._audit.add("", asker.address, "login", {"by": "oidc"}, "refused")
            text = f"The identity provider's answer is refused: {error}."
            return self._refused(HTTPStatus.UNAUTHORIZED, text)
        known = gate.access.by_oidc(name)
        if known is None:
            self._audit.add(name[:LONGEST], asker.address, "login", {"by": "oidc"}, "refused")
            text = f"{name[:LONGEST]} has no line in the file of users."
            return self._refused(HTTPStatus.FORBIDDEN, text)
        gate.limit.passed(asker.address, TRIES, tried_ms)
        self._audit.add(name, asker.address, "login", {"by": "oidc"}, "ok")
        # Respond with a page that navigates on, not with a redirect: the session cookie is
        # SameSite=Strict, and browsers would not send it in a redirect chain that began at the
        # provider.
        html = self._templates.get_template("logged_in.html").render(page=own_page(attempt.page))
        return start_session(HTMLResponse(html), gate, request, name, known[1])

    def _failed(self, error: ProviderFailed) -> Response:
        logger.warning("nobody can log in by OpenID Connect: %s", error)
        text = "The identity provider does not answer as it should: see the console's log."
        return self._refused(HTTPStatus.SERVICE_UNAVAILABLE, text)

    def _refused(self, status: HTTPStatus, text: str) -> Response:
        template = self._templates.get_template("login_refused.html")
        return HTMLResponse(template.render(text=text), status)
