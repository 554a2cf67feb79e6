"""Every route of the console refuses users without its role and answers the others."""

import asyncio
import re
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from argon2 import PasswordHasher
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from penstock.advice.snapshot import ClusterSnapshot
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.metadata import ClusterMetadata
from penstock.clock import SystemClock
from penstock.console.app import console
from penstock.console.audit import Audit, redacted
from penstock.console.login import own_page
from penstock.console.rights import LEAST
from penstock.console.serving import server_config
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.http.access import HttpAccess, token_hash
from penstock.http.users import Role
from penstock.testing.clock import ManualClock
from penstock.types import BrokerId
from support.console_app import LOCAL, Answer, answered, asked

WATCH = ClusterWatch(Client([Address("127.0.0.1", 1)], timeout_ms=1), SystemClock())
LOOK = ClusterLook(0, ClusterSnapshot(ClusterMetadata("c", BrokerId(1), {}), []), {}, {}, {}, ())
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SECRETS = {each: f"token of {each.name}" for each in Role}


def routes() -> list[str]:
    """All routes, so that a new one is tested too."""
    found = []
    for route in console(WATCH, HttpAccess(None)).routes:
        assert isinstance(route, Route | Mount)
        methods = {"GET"} if isinstance(route, Mount) else (route.methods or set()) - {"HEAD"}
        found += [f"{each} {route.path}" for each in methods]
    return sorted(found)


ROUTES = routes()
GUARDED = [each for each in ROUTES if LEAST[each] is not None]
CHANGING = [each for each in ROUTES if not each.startswith("GET ")]


def url_of(route: str) -> str:
    return re.sub(r"\{\w+\}", "t", route).replace("/static", "/static/console.css")


@pytest.fixture
def locked(tmp_path: Path) -> Starlette:
    """A console with users: a token for each role, and Alice, an admin with a password."""
    file = tmp_path / "users"
    lines = [f"{each.name} {each.name} {token_hash(SECRETS[each])}" for each in Role]
    file.write_text("\n".join([*lines, f"alice admin {QUICK.hash('right')}"]))
    return console(WATCH, HttpAccess(file), clock=ManualClock(1_000_000))


def bearer(role: Role) -> dict[str, str]:
    return {**LOCAL, "authorization": f"Bearer {SECRETS[role]}"}


def csrf_of(page: Answer) -> str:
    (found,) = re.findall(rb'"X-CSRF-Token": "(\w+)"', page.body)
    return str(found.decode())


def logged_in(app: Starlette, password: str = "right", **more: str) -> Answer:
    headers = {**LOCAL, "x-csrf-token": csrf_of(asked(app, "GET /login", LOCAL)), **more}
    form = urlencode({"name": "alice", "password": password, "next": "/topics?match=a"})
    return asked(app, "POST /login", headers, form.encode())


def cookie_of(answer: Answer) -> dict[str, str]:
    return {**LOCAL, "cookie": answer.headers["set-cookie"].partition(";")[0]}


def test_every_route_has_a_role_and_every_role_a_route() -> None:
    assert sorted(LEAST) == ROUTES


@pytest.mark.parametrize(
    "path",
    [
        "/login/../topics",
        "/static/../topics",
        "/static/%2e%2e/topics",
        "/static/..%2ftopics",
        "//topics",
        "/./topics",
        "/topics;/login",
        "/TOPICS",
        "/api/v1/../../topics",
    ],
)
def test_another_spelling_of_a_path_needs_a_login_too(locked: Starlette, path: str) -> None:
    """CVE-2026-105949."""
    found = asked(locked, f"GET {path}", LOCAL)
    assert found.status in {303, 401, 404}
    assert found.status != 303 or found.headers["location"].startswith("/login?next=")


@pytest.mark.parametrize("route", [*GUARDED, "GET /none", "POST /none"])
def test_no_route_is_served_without_a_login(locked: Starlette, route: str) -> None:
    token = csrf_of(asked(locked, "GET /login", LOCAL))
    for headers in ({}, {"cookie": "penstock_session=YWxpY2U.9.x.y"}):
        found = asked(locked, url_of(route), {**LOCAL, **headers, "x-csrf-token": token})
        assert found.status in {303, 401}
        assert found.status == 401 or found.headers["location"].startswith("/login?next=")
        assert len(found.body) < 100
    for proof in ("Bearer wrong", "Basic !"):
        found = asked(locked, url_of(route), {**LOCAL, "authorization": proof})
        assert found.status in {303, 401}
        is_api = "/api/" in route
        assert ("www-authenticate" in found.headers) == is_api, "pages have a login page"
    assert asked(locked, url_of(route), bearer(Role.ADMIN)).status not in {303, 401, 403}


@pytest.mark.parametrize("route", [each for each in GUARDED if LEAST[each] != Role.VIEWER])
def test_a_role_without_the_permission_is_refused_by_name(locked: Starlette, route: str) -> None:
    needed = LEAST[route]
    assert needed is not None
    found = asked(locked, url_of(route), bearer(Role(needed - 1)))
    assert found.status == 403
    assert f"but this needs {needed.name.lower()}".encode() in found.body
    assert asked(locked, url_of(route), bearer(needed)).status != 403


@pytest.mark.parametrize("route", CHANGING)
def test_a_change_needs_a_csrf_token_and_our_origin(locked: Starlette, route: str) -> None:
    started = cookie_of(logged_in(locked))
    page = asked(locked, "GET /api/v1/session", started)
    token = msgspec.json.decode(page.body)["csrf_token"]
    anonymous = csrf_of(asked(locked, "GET /login", LOCAL))
    for wrong in ({}, {"x-csrf-token": anonymous}, {"x-csrf-token": "ü"}):
        found = asked(locked, url_of(route), {**started, **wrong})
        assert (found.status, b"x-csrf-token is missing" in found.body) == (403, True)
    for origin in ("http://evil.example", "null", "http://127.0.0.1:8081", "https://["):
        headers = {**started, "x-csrf-token": token, "origin": origin}
        assert asked(locked, url_of(route), headers).status == 403
        assert asked(locked, url_of(route), {**bearer(Role.ADMIN), "origin": origin}).status == 403
    headers = {**started, "x-csrf-token": token, "origin": "http://127.0.0.1:8080"}
    assert asked(locked, url_of(route), headers).status != 403


@pytest.mark.parametrize("route", ROUTES)
def test_without_users_only_loopback_is_served(route: str) -> None:
    app = console(WATCH, HttpAccess(None))
    token = msgspec.json.decode(asked(app, "GET /api/v1/session", LOCAL).body)["csrf_token"]
    given = {**LOCAL, "x-csrf-token": token}
    assert asked(app, url_of(route), {**given, "host": "evil.example"}).status == 403
    assert asked(app, url_of(route), {**given, "origin": "http://evil.example"}).status == 403
    found = asked(app, url_of(route), given)
    assert found.status not in {401, 403, 404, 405, 500}
    assert "default-src 'self'" in found.headers["content-security-policy"]
    assert "unsafe" not in found.headers["content-security-policy"]
    if route in CHANGING:
        assert asked(app, url_of(route), LOCAL).status == 403


def test_a_read_only_console_hides_what_it_refuses() -> None:
    for is_read_only in (False, True):
        watch = ClusterWatch(Client([Address("127.0.0.1", 1)], timeout_ms=1), SystemClock())
        watch.last = LOOK
        app = console(watch, HttpAccess(None, read_only=is_read_only))
        page = asked(app, "GET /topics", LOCAL).body.decode()
        for hidden in ("New topic", 'href="/audit"', 'href="/access"'):
            assert (hidden in page) is not is_read_only, hidden
        assert 'href="/groups"' in page


def test_a_read_only_console_refuses_changes_by_all_users() -> None:
    app = console(WATCH, HttpAccess(None, read_only=True))
    assert asked(app, "GET /audit", LOCAL).status == 403, "more than a viewer is read-only too"
    assert asked(app, "GET /topics", LOCAL).status == 503, "the cluster has not answered"


def test_a_session_cookie_is_hidden_from_scripts_and_other_sites(locked: Starlette) -> None:
    found = logged_in(locked)
    assert (found.status, found.headers["hx-redirect"]) == (200, "/topics?match=a")
    assert "HttpOnly; Max-Age=43200; Path=/; SameSite=strict" in found.headers["set-cookie"]
    assert "Secure" not in found.headers["set-cookie"]
    headers = {**LOCAL, "x-csrf-token": csrf_of(asked(locked, "GET /login", LOCAL))}
    safe = asked(locked, "POST /login", headers, b"name=alice&password=right", "https")
    assert "Secure" in safe.headers["set-cookie"]
    session = asked(locked, "GET /api/v1/session", cookie_of(found))
    assert msgspec.json.decode(session.body)["role"] == "admin"


def test_a_session_ends_by_logout_by_time_and_by_a_new_password(tmp_path: Path) -> None:
    clock, file = ManualClock(1_000_000), tmp_path / "users"
    file.write_text(f"alice admin {QUICK.hash('right')}")
    app = console(WATCH, HttpAccess(file, clock=clock), clock=clock)
    first, second = cookie_of(logged_in(app)), cookie_of(logged_in(app))
    token = msgspec.json.decode(asked(app, "GET /api/v1/session", first).body)["csrf_token"]
    assert asked(app, "POST /logout", {**first, "x-csrf-token": token}).status == 200
    assert asked(app, "GET /api/v1/session", first).status == 401
    assert asked(app, "GET /api/v1/session", second).status == 200
    forged = {**second, "cookie": second["cookie"].replace(".", "0.", 1)}
    assert asked(app, "GET /api/v1/session", forged).status == 401
    file.write_text(f"alice viewer {QUICK.hash('newer')}\n")
    clock.advance(2_000)
    assert asked(app, "GET /api/v1/session", second).status == 401
    third = cookie_of(logged_in(app, "newer"))
    clock.advance(12 * 3_600_000)
    assert asked(app, "GET /api/v1/session", third).status == 401


def test_password_attempts_are_limited(tmp_path: Path) -> None:
    clock, file = ManualClock(1_000_000), tmp_path / "users"
    file.write_text(f"alice admin {QUICK.hash('right')}")
    audit = Audit(None, clock)
    app = console(WATCH, HttpAccess(file), audit=audit, clock=clock)
    assert [logged_in(app, "wrong").status for _ in range(6)] == [401] * 5 + [429]
    found = logged_in(app)
    assert (found.status, b"try again in 60 s" in found.body) == (429, True)
    clock.advance(60_000)
    assert logged_in(app).status == 200
    assert [each.result for each in audit.lines] == ["refused"] * 5 + ["ok"]
    basic = {**LOCAL, "authorization": "Basic " + b64encode(b"alice:wrong").decode()}
    statuses = [asked(app, "GET /api/v1/session", basic).status for _ in range(51)]
    assert statuses == [401] * 50 + [429]


def test_concurrent_password_attempts_are_limited_like_sequential_ones(tmp_path: Path) -> None:
    clock, file = ManualClock(1_000_000), tmp_path / "users"
    file.write_text(f"alice admin {QUICK.hash('right')}")
    app = console(WATCH, HttpAccess(file), clock=clock)
    token = csrf_of(asked(app, "GET /login", LOCAL))
    basic = "Basic " + b64encode(b"alice:wrong").decode()

    async def at_once(route: str, headers: dict[str, str], body: bytes = b"") -> list[int]:
        async with asyncio.TaskGroup() as tasks:
            given = (app, route, {**LOCAL, **headers}, body)
            asking = [tasks.create_task(answered(*given)) for _ in range(80)]
        return [each.result().status for each in asking]

    async def both() -> None:
        form = b"name=alice&password=wrong"
        statuses = await at_once("POST /login", {"x-csrf-token": token}, form)
        assert (statuses.count(401), statuses.count(429)) == (5, 75)
        statuses = await at_once("GET /api/v1/session", {"authorization": basic})
        assert (statuses.count(401), statuses.count(429)) == (45, 35)

    asyncio.run(both())
    clock.advance(60_000)
    assert [logged_in(app).status for _ in range(9)] == [200] * 9, "what passes does not count"


def test_failed_logins_with_made_up_names_do_not_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"alice admin {QUICK.hash('right')}")
    app = console(WATCH, HttpAccess(file), clock=ManualClock(1_000_000))
    headers = {**LOCAL, "x-csrf-token": csrf_of(asked(app, "GET /login", LOCAL))}
    forms = [b"password=x&name=" + b"n" * 100_000 + str(each).encode() for each in range(6)]
    statuses = [asked(app, "POST /login", headers, each).status for each in forms]
    assert statuses == [401] * 5 + [429], "they count as one name"


def test_forwarded_headers_do_not_change_the_clients_address() -> None:
    seen = []

    async def app(scope: Scope, _: Receive, __: Send) -> None:
        seen.append((scope["client"], scope["scheme"]))

    async def ask() -> None:
        forged = [(b"x-forwarded-for", b"10.0.0.1"), (b"x-forwarded-proto", b"https")]
        scope = {"type": "http", "client": ("127.0.0.1", 1), "scheme": "http", "headers": forged}
        config = server_config(app)
        config.load()
        await config.loaded_app(scope, None, None)

    asyncio.run(ask())
    assert seen == [(("127.0.0.1", 1), "http")]


def test_the_login_redirects_to_pages_of_the_console_only() -> None:
    assert own_page("/topics?match=a") == "/topics?match=a"
    for other in (
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "",
        "/a\nb",
        "/\u2192",
    ):
        assert own_page(other) == "/"


def test_the_audit_log_contains_no_secrets(tmp_path: Path) -> None:
    given = {"user": "a", "password": "p", "configs": {"sasl.jaas.config": "p", "x": "1"}}
    shown = {"user": "a", "password": "***", "configs": {"sasl.jaas.config": "***", "x": "1"}}
    assert redacted(given) == shown
    file = tmp_path / "audit"
    Audit(file, ManualClock(5)).add("alice", "::1", "user.alter", given, "ok")
    line = msgspec.json.decode(file.read_text())
    assert (line["user"], line["change"], line["given"]) == ("alice", "user.alter", shown)


def test_a_line_of_the_audit_log_is_short_even_for_a_long_request() -> None:
    """Viewers may test schemas, and a thousand lines are kept in memory."""
    long = "x" * 1_000_000
    audit = Audit(None, ManualClock(5))
    audit.add("v", "::1", "schema.test", {"schema": long, "type": "AVRO", "a": [long]}, long)
    audit.add("v", "::1", "schema.test", {long + str(each): each for each in range(100)}, "ok")
    for line in audit.lines:
        assert len(msgspec.json.encode(line)) < 200_000
    first = audit.lines[0]
    assert first.given["type"] == "AVRO"
    assert first.given["schema"].endswith("xxx… (1000000 characters)")


def test_a_change_that_cannot_be_audited_is_refused(tmp_path: Path) -> None:
    folder, users = tmp_path / "logs", tmp_path / "users"
    folder.mkdir()
    users.write_text(f"alice admin {QUICK.hash('right')}")
    clock = ManualClock(1_000_000)
    app = console(WATCH, HttpAccess(users), audit=Audit(folder / "audit", clock), clock=clock)
    folder.rename(tmp_path / "away")
    session = cookie_of(logged_in(app))  # logging in still works, so that the log can be repaired
    token = msgspec.json.decode(asked(app, "GET /api/v1/session", session).body)["csrf_token"]
    found = asked(app, "POST /api/v1/leaders/elect", {**session, "x-csrf-token": token})
    assert (found.status, b"audit log" in found.body) == (400, True)
    (tmp_path / "away").rename(folder)
    found = asked(app, "POST /api/v1/leaders/elect", {**session, "x-csrf-token": token})
    assert (found.status, b"audit log" in found.body) == (503, False), "there is no cluster"
    line = msgspec.json.decode((folder / "audit").read_text())
    assert (line["change"], line["user"]) == ("leaders.elect", "alice")


def test_a_cluster_that_has_not_answered_yet_is_reported() -> None:
    app = console(WATCH, HttpAccess(None))
    assert b"Waiting for the cluster" in asked(app, "GET /topics", LOCAL).body
    found = asked(app, "GET /api/v1/topics", LOCAL)
    assert (found.status, b"no answer from the cluster" in found.body) == (503, True)
