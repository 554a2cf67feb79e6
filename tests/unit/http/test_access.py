"""Authorization over HTTP: users files, roles, and requests without a login."""

import asyncio
import os
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.http.access import (
    Denied,
    HttpAccess,
    check_exposed,
    is_loopback,
    password_hash,
    password_matches,
    token_hash,
)
from penstock.http.message import HttpRequest
from penstock.http.users import Role, parse_users

HASH = password_hash("secret")


class Clock:
    """Advances only by hand."""

    def __init__(self) -> None:
        self.now = 0

    def monotonic_ms(self) -> int:
        return self.now

    def now_ms(self) -> int:
        return self.now


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def asked(headers: dict[str, str]) -> HttpRequest:
    return HttpRequest("GET", "/", "", {"host": "127.0.0.1:8081", **headers})


def status(access: HttpAccess, headers: dict[str, str], needed: Role = Role.VIEWER) -> int:
    try:
        asyncio.run(access.check(asked(headers), needed))
    except Denied as denied:
        return denied.status.value
    return 200


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    file.write_text(f"# people\nvi viewer {HASH}\nci operator {token_hash('t0ken')}\n\n")
    return file


def test_passwords_and_tokens_log_in_with_their_roles(users: Path) -> None:
    access = HttpAccess(users)
    assert status(access, basic("vi", "secret")) == 200
    assert status(access, basic("vi", "secret"), Role.OPERATOR) == 403
    assert status(access, bearer("t0ken"), Role.OPERATOR) == 200
    assert status(access, bearer("t0ken"), Role.ADMIN) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("vi", "wrong"),
        basic("nobody", "secret"),
        basic("ci", "t0ken"),
        bearer("secret"),
        bearer(""),
        {"authorization": "Basic ===="},
        {"authorization": "Digest x"},
    ],
)
def test_any_other_credentials_are_refused(users: Path, headers: dict[str, str]) -> None:
    assert status(HttpAccess(users), headers) == 401


def test_a_read_only_instance_refuses_changes_by_all_users() -> None:
    access = HttpAccess(None, read_only=True)
    assert status(access, {}) == 200
    assert status(access, {}, Role.OPERATOR) == 403


def test_a_changed_users_file_takes_effect_soon_and_a_broken_one_does_not(users: Path) -> None:
    clock = Clock()
    access = HttpAccess(users, clock=clock)
    assert status(access, bearer("t0ken")) == 200
    users.write_text("nonsense")
    clock.now += 2_000
    assert status(access, bearer("t0ken")) == 200
    users.write_text(f"ci operator {token_hash('another')}\n")
    os.utime(users, (1, 1))
    clock.now += 2_000
    assert status(access, bearer("t0ken")) == 401
    assert status(access, bearer("another")) == 200


@pytest.mark.parametrize(
    "line",
    ["vi viewer", "vi king x", "vi viewer plain", "v:i viewer " + HASH, "a b c d", ""],
)
def test_a_malformed_users_file_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="users"):
        parse_users(line, "users")
    with pytest.raises(ConfigError, match="twice"):
        parse_users(f"a viewer {HASH}\na admin {HASH}", "users")


def test_without_users_only_loopback_is_served(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposed(host, None, "listen")
    for host in ("", "0.0.0.0", "192.0.2.1", "kafka1", "::"):
        assert not is_loopback(host)
        with pytest.raises(ConfigError, match="users file"):
            check_exposed(host, None, "listen")
        check_exposed(host, tmp_path, "listen")
    with pytest.raises(ConfigError, match="No such file"):
        HttpAccess(tmp_path / "missing")


def test_without_users_requests_from_other_sites_are_refused() -> None:
    access = HttpAccess(None)
    assert status(access, {"host": "localhost"}) == 200
    assert status(access, {"origin": "http://127.0.0.1:8081"}) == 200
    assert status(access, {"origin": "http://evil.example"}) == 403
    assert status(access, {"host": "evil.example"}) == 403
    assert status(access, {"host": "["}) == 403
    assert status(access, {"origin": "http://["}) == 403


def test_requests_from_other_sites_change_nothing_with_a_browsers_login(users: Path) -> None:
    users.write_text(f"op operator {HASH}\n")
    access = HttpAccess(users)
    login = basic("op", "secret")
    assert status(access, login, Role.OPERATOR) == 200
    assert status(access, {**login, "origin": "http://127.0.0.1:8081"}, Role.OPERATOR) == 200
    assert status(access, {**login, "origin": "http://evil.example"}, Role.OPERATOR) == 403
    assert status(access, {**login, "origin": "null"}, Role.OPERATOR) == 403


def test_a_user_removed_during_the_password_check_is_not_cached(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    access = HttpAccess(users, clock=clock)

    async def removed_meanwhile() -> None:
        checking, goes_on = asyncio.Event(), asyncio.Event()

        async def slowly(*_: object) -> bool:
            checking.set()
            await goes_on.wait()
            return True

        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "to_thread", slowly)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(access.check(asked(basic("vi", "secret")), Role.VIEWER))
                await checking.wait()
                users.write_text(f"ci operator {token_hash('t0ken')}\n")
                clock.now += 2_000
                await access.check(asked(bearer("t0ken")), Role.VIEWER)  # reads the file again
                goes_on.set()
        with pytest.raises(Denied):
            await access.check(asked(basic("vi", "secret")), Role.VIEWER)

    asyncio.run(removed_meanwhile())


def test_without_the_password_library_a_file_of_tokens_refuses_passwords(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.write_text(f"ci operator {token_hash('t0ken')}\n")
    monkeypatch.setitem(sys.modules, "argon2", None)
    monkeypatch.setattr("penstock.http.access._NOBODY", [])
    assert status(HttpAccess(users), basic("ci", "t0ken")) == 401


def test_the_error_of_a_password_check_names_the_missing_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("argon2", "argon2.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match="a users file needs argon2-cffi"):
        password_matches("$argon2id$x", "secret")
