"""Logging in to the console with an identity provider, and all the refusals."""

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest
from argon2 import PasswordHasher
from starlette.applications import Starlette

from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.endpoint import ask
from penstock.clock import SystemClock
from penstock.config.oidc import parse_oidc
from penstock.console import login_limit
from penstock.console.app import console
from penstock.console.audit import Audit
from penstock.console.oidc import provider as provider_module
from penstock.console.oidc.attempt import Attempt
from penstock.console.oidc.provider import Provider
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess
from penstock.testing.clock import ManualClock
from support.console_app import LOCAL, Answer, asked
from support.security.identity_provider import CLIENT, SECRET, IdentityProvider, identity_provider
from support.security.tokens import as_jwk, ec_key, key_set, rsa_key

WATCH = ClusterWatch(Client([Address("127.0.0.1", 1)], timeout_ms=1), SystemClock())
BACK = "http://127.0.0.1:8080/login/oidc/callback"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
USERS = f"alice operator oidc\nbob@example.com viewer oidc\ncarol admin {QUICK.hash('right')}\n"


class Console:
    """A console with users and a provider, and a browser that keeps only its cookies."""

    def __init__(self, folder: Path, provider: IdentityProvider, **settings: str) -> None:
        self.provider, self.clock = provider, ManualClock(int(time.time() * 1000))
        self.users = folder / "users"
        self.users.write_text(USERS)
        self.audit = Audit(None, self.clock)
        given = {
            "issuer": provider.url,
            "client.id": CLIENT,
            "client.secret": SECRET,
            "redirect.uri": BACK,
            **settings,
        }
        text = "\n".join(f"{name}={value}" for name, value in given.items() if value)
        self.app = self.app_with(Provider(parse_oidc(text, "oidc"), self.clock))

    def app_with(self, provider: Provider | None) -> Starlette:
        access = HttpAccess(self.users, clock=self.clock)
        return console(WATCH, access, audit=self.audit, clock=self.clock, provider=provider)

    def begin(self, page: str = "/topics?match=a") -> Answer:
        return asked(self.app, f"GET /login/oidc?{urlencode({'next': page})}", LOCAL)

    def back(self, location: str, headers: dict[str, str]) -> Answer:
        parts = urlsplit(location)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == BACK
        return asked(self.app, f"GET {parts.path}?{parts.query}", headers)

    def log_in(self, page: str = "/topics?match=a") -> Answer:
        begun = self.begin(page)
        assert begun.status == 303, begun.body
        location = self.provider.log_in(begun.headers["location"])
        return self.back(location, cookie_of(begun))


def cookie_of(answer: Answer) -> dict[str, str]:
    return {**LOCAL, "cookie": answer.headers["set-cookie"].partition(";")[0]}


def session_of(answer: Answer) -> dict[str, str]:
    """The session cookie. The headers also delete the login attempt's cookie, which comes last."""
    (found,) = re.findall(r"penstock_session=[^;]+", answer.headers["set-cookie"])
    return {**LOCAL, "cookie": found}


@pytest.fixture
def idp() -> Iterator[IdentityProvider]:
    with identity_provider() as found:
        yield found


@pytest.fixture
def opened(tmp_path: Path, idp: IdentityProvider) -> Console:
    return Console(tmp_path, idp)


def test_a_user_of_the_provider_has_the_role_in_the_users_file(opened: Console) -> None:
    page = asked(opened.app, "GET /login?next=%2Ftopics", LOCAL)
    assert b'href="/login/oidc?next=/topics"' in page.body
    found = opened.log_in()
    assert found.status == 200, found.body
    assert b'content="0; url=/topics?match=a"' in found.body
    assert "HttpOnly; Max-Age=43200; Path=/; SameSite=strict" in found.headers["set-cookie"]
    session = msgspec.json.decode(asked(opened.app, "GET /api/v1/session", session_of(found)).body)
    assert (session["user"], session["role"]) == ("alice", "operator")
    (line,) = opened.audit.lines
    assert (line.user, line.change, line.result) == ("alice", "login", "ok")
    token = {"x-csrf-token": session["csrf_token"]}
    assert asked(opened.app, "POST /logout", {**session_of(found), **token}).status == 200
    assert asked(opened.app, "GET /api/v1/session", session_of(found)).status == 401


def test_a_claim_can_be_the_name(tmp_path: Path, idp: IdentityProvider) -> None:
    opened = Console(tmp_path, idp, claim="email")
    idp.claims = {"sub": "5f7c", "email": "bob@example.com", "email_verified": True}
    found = asked(opened.app, "GET /api/v1/session", session_of(opened.log_in()))
    assert msgspec.json.decode(found.body)["user"] == "bob@example.com"
    assert "scope=openid+email" in opened.begin().headers["location"]


def test_the_client_secret_is_sent_as_the_provider_requires(
    opened: Console, idp: IdentityProvider
) -> None:
    idp.said = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert opened.log_in().status == 200


def test_the_providers_metadata_is_requested_once_an_hour(
    opened: Console, idp: IdentityProvider
) -> None:
    assert [opened.log_in().status for _ in range(3)] == [200] * 3
    assert idp.asked.count("/.well-known/openid-configuration") == idp.asked.count("/keys") == 1
    opened.clock.advance(3_600_000)
    assert opened.begin().status == 303
    assert idp.asked.count("/keys") == 2


def test_the_providers_new_keys_are_requested_at_most_once_a_minute(
    opened: Console, idp: IdentityProvider
) -> None:
    assert opened.log_in().status == 200
    idp.keys = key_set(as_jwk(ec_key("new"), "three"))
    idp.signing = {"key": ec_key("new"), "key_id": "three"}
    assert [opened.log_in().status for _ in range(3)] == [401] * 3
    assert idp.asked.count("/keys") == 1
    opened.clock.advance(60_000)
    assert opened.log_in().status == 200
    assert idp.asked.count("/keys") == 2


HOUR = 3_600
WRONG_TOKENS: list[Any] = [
    ({"iss": "http://127.0.0.1:1"}, "is of another issuer"),
    ({"iss": None}, "is of another issuer"),
    ({"aud": "another"}, "for another client (aud)"),
    ({"aud": None}, "for another client (aud)"),
    ({"aud": []}, "for another client (aud)"),
    ({"aud": [CLIENT, "another"]}, "issued to another client (azp)"),
    ({"azp": "another"}, "issued to another client (azp)"),
    ({"nonce": "another"}, "is of another login (nonce)"),
    ({"nonce": None}, "is of another login (nonce)"),
    ({"nonce": ["a"]}, "is of another login (nonce)"),
    ({"exp": int(time.time()) - HOUR}, "has expired"),
    ({"exp": None}, "has no exp"),
    ({"exp": "never"}, "exp of the token is not a number"),
    ({"iat": None}, "has no iat"),
    ({"iat": int(time.time()) + HOUR, "exp": int(time.time()) + 2 * HOUR}, "does not hold yet"),
    ({"nbf": int(time.time()) + HOUR, "exp": int(time.time()) + 2 * HOUR}, "does not hold yet"),
    ({"subject": ""}, "has no sub"),
    ({"sub": 7}, "has no sub"),
]


@pytest.mark.parametrize(("claims", "refusal"), WRONG_TOKENS)
def test_a_token_that_is_not_for_this_login_is_refused(
    opened: Console, idp: IdentityProvider, claims: dict[str, Any], refusal: str
) -> None:
    idp.claims = {"sub": "alice", **claims}
    idp.claims.pop("sub") if "subject" in claims else None
    check_refused(opened, opened.log_in(), 401, refusal)


WRONG_SIGNATURES: list[Any] = [
    ({"key": ec_key("stranger")}, "the signature of the token is wrong"),
    ({"key_id": "another"}, "a key that the issuer does not list"),
    ({"algorithm": "none"}, "not signed by an accepted algorithm"),
    ({"key": "a shared secret that is long enough", "algorithm": "HS256"}, "not signed by an"),
    ({"key": rsa_key(), "algorithm": "RS256"}, "a key that the issuer does not list"),
]


@pytest.mark.parametrize(("signing", "refusal"), WRONG_SIGNATURES)
def test_a_token_that_the_provider_has_not_signed_is_refused(
    opened: Console, idp: IdentityProvider, signing: dict[str, Any], refusal: str
) -> None:
    idp.signing = signing
    check_refused(opened, opened.log_in(), 401, refusal)


def check_refused(opened: Console, found: Answer, status: int, refusal: str) -> None:
    assert (found.status, refusal in found.body.decode()) == (status, True), found.body
    assert "penstock_session" not in found.headers.get("set-cookie", "")
    assert [each.result for each in opened.audit.lines if each.result == "ok"] == []


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://another.example"},
        {"issuer": None},
        {"token_endpoint": None},
        {"token_endpoint": "http://another.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
    ],
)
def test_a_provider_with_wrong_metadata_is_not_used(
    opened: Console, idp: IdentityProvider, said: dict[str, Any]
) -> None:
    idp.said = said
    check_refused(opened, opened.begin(), 503, "does not answer as it should")
    assert "/token" not in idp.asked


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
@pytest.mark.parametrize("answer", [b"", b"{", b"[]", b"{}", b'{"keys": []}', b"x" * (2 << 20)])
def test_a_malformed_response_logs_nobody_in(
    opened: Console, idp: IdentityProvider, path: str, answer: bytes
) -> None:
    idp.answers[path] = answer
    begun = opened.begin()
    if path != "/token":
        check_refused(opened, begun, 503, "does not answer as it should")
        return
    back = idp.log_in(begun.headers["location"])
    check_refused(opened, opened.back(back, cookie_of(begun)), 503, "does not answer as it should")


def test_an_unavailable_provider_is_not_asked_again_at_once(
    opened: Console, idp: IdentityProvider
) -> None:
    idp.answers["/keys"] = b""
    assert [opened.begin().status for _ in range(3)] == [503] * 3
    assert idp.asked.count("/keys") == 1
    del idp.answers["/keys"]
    opened.clock.advance(5_000)
    assert opened.begin().status == 303


def test_a_provider_that_hangs_times_out(opened: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "ANSWER_S", 0.0)
    check_refused(opened, opened.begin(), 503, "does not answer as it should")


def test_provider_requests_use_their_own_threads(
    idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passwords are checked in the loop's own threads, of which none is free in this test."""
    text = f"issuer={idp.url}\nclient.id={CLIENT}\nredirect.uri={BACK}\n"
    given: list[float] = []

    def noted(*args: Any, within_s: float) -> bytes:
        given.append(within_s)
        return ask(*args, within_s=within_s)

    monkeypatch.setattr(provider_module, "ask", noted)

    async def log_in() -> str:
        none_left = ThreadPoolExecutor(1)
        none_left.shutdown()
        asyncio.get_running_loop().set_default_executor(none_left)
        provider = Provider(parse_oidc(text, "oidc"), SystemClock())
        return await provider.login_url(Attempt("a", "b", "c", "/"))

    assert asyncio.run(log_in()).startswith(f"{idp.url}/authorize")
    assert given == [provider_module.ANSWER_S] * 2, "no thread goes on after that"


def test_a_login_cannot_be_completed_by_another_browser(
    opened: Console, idp: IdentityProvider
) -> None:
    begun, other = opened.begin(), opened.begin()
    back = idp.log_in(begun.headers["location"])
    cookie = cookie_of(begun)["cookie"]
    for headers in (
        LOCAL,
        cookie_of(other),
        {**LOCAL, "cookie": "penstock_login=a.b.c.d"},
        {**LOCAL, "cookie": cookie.replace(".", "0.", 1)},
        {**LOCAL, "cookie": cookie[:-1] + ("0" if cookie[-1] != "0" else "1")},
    ):
        check_refused(opened, opened.back(back, headers), 400, "was not begun here")
    for query in ("", "?state=", "?code=code-0", "?code=code-0&state=%C3%BC"):
        found = asked(opened.app, f"GET /login/oidc/callback{query}", cookie_of(begun))
        check_refused(opened, found, 400, "was not begun here")
    assert "/token" not in idp.asked, "the provider is spared"
    assert opened.back(back, cookie_of(begun)).status == 200


def test_a_login_expires_after_ten_minutes_and_works_once(
    opened: Console, idp: IdentityProvider
) -> None:
    begun = opened.begin()
    back = idp.log_in(begun.headers["location"])
    found = opened.back(back, cookie_of(begun))
    assert found.status == 200
    assert 'penstock_login=""' in found.headers["set-cookie"]
    assert opened.back(back, cookie_of(begun)).status == 503, "the provider refuses the code"
    begun = opened.begin()
    back = idp.log_in(begun.headers["location"])
    opened.clock.advance(600_000)
    assert opened.back(back, cookie_of(begun)).status == 400


def test_a_refusal_of_the_provider_is_shown_without_its_text(
    opened: Console, idp: IdentityProvider
) -> None:
    begun = opened.begin()
    state = idp.log_in(begun.headers["location"]).partition("state=")[2]
    query = urlencode({"error": "<b>call 0900</b>", "code": "code-0"})
    for given in (query, "code=" + "x" * 5_000, "code="):
        path = f"GET /login/oidc/callback?state={state}&{given}"
        found = asked(opened.app, path, cookie_of(begun))
        check_refused(opened, found, 401, "The identity provider has refused the login.")
        assert b"0900" not in found.body
    assert [each.result for each in opened.audit.lines] == ["refused"] * 3


@pytest.mark.parametrize(
    ("issuer", "is_needed", "status"),
    [("", False, 200), ("", True, 401), ("own", True, 200), ("https://x.example", False, 401)],
)
def test_a_response_of_another_issuer_is_refused(
    opened: Console, idp: IdentityProvider, issuer: str, is_needed: bool, status: int
) -> None:
    """RFC 9207."""
    idp.said = {"authorization_response_iss_parameter_supported": is_needed}
    begun = opened.begin()
    back = idp.log_in(begun.headers["location"])
    if issuer:
        back += "&" + urlencode({"iss": idp.url if issuer == "own" else issuer})
    assert opened.back(back, cookie_of(begun)).status == status


@pytest.mark.parametrize("name", ["dave", "carol", "ALICE", "alice ", "<script>", "x" * 9_000])
def test_users_without_a_provider_line_are_refused(
    opened: Console, idp: IdentityProvider, name: str
) -> None:
    """Carol has a password, so the provider cannot log her in."""
    idp.claims = {"sub": name}
    found = opened.log_in()
    check_refused(opened, found, 403, "has no line in the file of users")
    assert b"<script>" not in found.body
    assert len(found.body) < 2_000
    (line,) = opened.audit.lines
    assert (line.result, len(line.user) <= 65) == ("refused", True)


def test_an_unverified_address_is_refused(tmp_path: Path, idp: IdentityProvider) -> None:
    opened = Console(tmp_path, idp, claim="email")
    for verified in (False, None, "true", 1):
        idp.claims = {"email": "bob@example.com", "email_verified": verified}
        check_refused(opened, opened.log_in(), 401, "has not verified the email address")


def test_a_session_ends_when_its_line_is_removed_or_gets_a_password(opened: Console) -> None:
    first = session_of(opened.log_in())
    assert asked(opened.app, "GET /api/v1/session", first).status == 200
    opened.users.write_text(USERS.replace("operator", "viewer"))
    opened.clock.advance(2_000)
    found = asked(opened.app, "GET /api/v1/session", first)
    assert msgspec.json.decode(found.body)["role"] == "viewer"
    for line in ("alice2 viewer oidc\n", f"alice admin {QUICK.hash('right')}  \n"):
        opened.users.write_text(line)
        opened.clock.advance(2_000)
        assert asked(opened.app, "GET /api/v1/session", first).status == 401


def test_a_user_of_the_provider_cannot_log_in_with_a_password(opened: Console) -> None:
    page = asked(opened.app, "GET /login", LOCAL)
    (token,) = re.findall(rb'"X-CSRF-Token": "(\w+)"', page.body)
    for password in (b"oidc", b""):
        form = b"name=alice&password=" + password
        headers = {**LOCAL, "x-csrf-token": token.decode()}
        assert asked(opened.app, "POST /login", headers, form).status == 401
    for proof in ("Bearer oidc", "Basic YWxpY2U6b2lkYw=="):
        found = asked(opened.app, "GET /api/v1/session", {**LOCAL, "authorization": proof})
        assert found.status == 401


def test_failed_provider_logins_are_rate_limited(
    opened: Console, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limit, "PER_ADDRESS", 3)
    idp.claims = {"sub": "dave"}
    assert [opened.log_in().status for _ in range(4)] == [403] * 3 + [429]
    assert idp.asked.count("/token") == 3
    opened.clock.advance(60_000)
    idp.claims = {"sub": "alice"}
    assert [opened.log_in().status for _ in range(5)] == [200] * 5, "what passes does not count"


@pytest.mark.parametrize("given", ["error=x", "code=", "code=" + "x" * 5_000])
def test_refusals_of_the_provider_do_not_fill_the_audit_log(
    opened: Console, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """Anybody can start a login and return with an error as often as they like."""
    monkeypatch.setattr(login_limit, "PER_ADDRESS", 3)
    begun = opened.begin()
    state = idp.log_in(begun.headers["location"]).partition("state=")[2]
    path = f"GET /login/oidc/callback?state={state}&{given}"
    found = [asked(opened.app, path, cookie_of(begun)).status for _ in range(5)]
    assert found == [401] * 3 + [429] * 2
    assert len(opened.audit.lines) == 3


def test_the_login_redirects_only_to_pages_of_the_console(opened: Console) -> None:
    for page in ("//evil.example", "https://evil.example", "/" + "a" * 5_000):
        assert b'content="0; url=/"' in opened.log_in(page).body
    shown = opened.log_in('/topics?match="><script>').body
    assert b"<script>" not in shown


@pytest.mark.parametrize(
    ("back", "is_secure"), [(BACK, False), (BACK.replace("http:", "HTTPS:"), True)]
)
def test_cookies_are_secure_only_if_browsers_return_by_tls(
    tmp_path: Path, idp: IdentityProvider, back: str, is_secure: bool
) -> None:
    """Behind a proxy that ends TLS, the console itself gets plain HTTP."""
    opened = Console(tmp_path, idp, **{"redirect.uri": back})
    begun = opened.begin()
    path = "/login/oidc/callback?" + idp.log_in(begun.headers["location"]).partition("?")[2]
    found = asked(opened.app, f"GET {path}", cookie_of(begun))
    page = asked(opened.app, "GET /login", LOCAL)
    (token,) = re.findall(rb'"X-CSRF-Token": "(\w+)"', page.body)
    headers = {**LOCAL, "x-csrf-token": token.decode()}
    by_password = asked(opened.app, "POST /login", headers, b"name=carol&password=right")
    for each, status in ((begun, 303), (found, 200), (by_password, 200)):
        assert each.status == status, each.body
        assert ("Secure" in each.headers["set-cookie"]) is is_secure


def test_without_a_provider_its_login_pages_do_not_exist(opened: Console) -> None:
    app = opened.app_with(None)
    assert b"/login/oidc" not in asked(app, "GET /login", LOCAL).body
    for route in ("GET /login/oidc", "GET /login/oidc/callback?code=a&state=b"):
        found = asked(app, route, LOCAL)
        assert (found.status, b"no identity provider" in found.body) == (404, True)
