"""Authenticates requests, and checks their roles."""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
from base64 import b64decode
from collections import OrderedDict
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from penstock.clock import Clock, SystemClock
from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.http.message import HttpRequest
from penstock.http.users import OIDC, Role, User, Users, parse_users

if TYPE_CHECKING:
    from argon2 import PasswordHasher

logger = logging.getLogger(__name__)

ANYBODY: Final = User("anonymous", Role.ADMIN)
"""The user on loopback without a users file: any local client could also read the files."""
REMEMBER_MS: Final = 60_000
REMEMBERED: Final = 1_000
LOOK_MS: Final = 1_000
CHECKS: Final = 2
"""The most concurrent password checks: each takes 64 MiB and a core for some 50 ms."""


class Denied(Exception):
    """The request is refused with this status: 401 requires a login, 403 refuses the role."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Seen(NamedTuple):
    user: User
    until_ms: int


class HttpAccess:
    """Checks requests. Without a users file it serves only loopback: see `check_exposed`."""

    def __init__(
        self, file: Path | None, *, read_only: bool = False, clock: Clock | None = None
    ) -> None:
        self._file, self.read_only = file, read_only
        self._clock = clock or SystemClock()
        self._stamp = None if file is None else _stamp(file)
        self._users = None if file is None else _load(file)
        self._looked_ms = self._clock.monotonic_ms()
        self._seen: OrderedDict[bytes, _Seen] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        self._checks = asyncio.Semaphore(CHECKS)

    async def check(self, request: HttpRequest, needed: Role) -> User:
        """The user of the request; raises `Denied` if there is none or its role is too low."""
        user = await self.user(request)
        if needed > Role.VIEWER and is_of_another_site(request):
            # A browser that has logged in by Basic sends credentials with requests of other sites'
            # pages, too.
            raise Denied(HTTPStatus.FORBIDDEN, "a page of another site may not change anything")
        self.check_role(user, needed)
        return user

    def check_role(self, user: User, needed: Role) -> None:
        if self.read_only and needed > Role.VIEWER:
            raise Denied(HTTPStatus.FORBIDDEN, "this instance is read-only")
        if user.role < needed:
            raise Denied(
                HTTPStatus.FORBIDDEN,
                f"{user.name} is {user.role.name.lower()}, but this needs {needed.name.lower()}",
            )

    @property
    def needs_login(self) -> bool:
        return self._file is not None

    async def login(self, name: str, password: str) -> User | None:
        """The user with this password; None if there is no such user, or the password is wrong."""
        users = self._current()
        return None if users is None else await self._by_password(users, name, password)

    def known(self, name: str) -> tuple[User, str] | None:
        """The user as the file has it now, and what its sessions are bound to: the password's hash,
        or the constant `OIDC` for a user of an identity provider.
        """
        users = self._current()
        if users is None:
            return None
        return users.passwords.get(name) or self._by_oidc(users, name)

    def by_oidc(self, name: str) -> tuple[User, str] | None:
        """Like `known`, but only for users of the identity provider."""
        users = self._current()
        return None if users is None else self._by_oidc(users, name)

    @staticmethod
    def _by_oidc(users: Users, name: str) -> tuple[User, str] | None:
        user = users.oidc.get(name)
        return None if user is None else (user, OIDC)

    async def user(self, request: HttpRequest) -> User:
        """The user of the request, from its Authorization header."""
        users = self._current()
        if users is None:
            check_local(request)
            return ANYBODY
        header = request.headers.get("authorization", "")
        kind, _, proof = header.partition(" ")
        now_ms = self._clock.monotonic_ms()
        # Checking a password is slow on purpose, so the result is cached, under a digest instead of
        # the password.
        digest = hmac.digest(self._secret, header.encode(), "sha256")
        seen = self._seen.get(digest)
        if seen is not None and seen.until_ms > now_ms:
            return seen.user
        user = None
        if kind.lower() == "bearer":
            user = users.by_token(proof.strip())
        elif kind.lower() == "basic":
            user = await self._by_basic(users, proof)
        if user is None:
            text = "wrong user, password or token" if header else "log in by Basic or Bearer"
            raise Denied(HTTPStatus.UNAUTHORIZED, text)
        if users is not self._users:
            # the file has changed meanwhile: do not cache a user who may have been removed
            return user
        self._seen[digest] = _Seen(user, now_ms + REMEMBER_MS)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return user

    async def _by_basic(self, users: Users, proof: str) -> User | None:
        try:
            name, _, password = b64decode(proof, validate=True).decode().partition(":")
        except ValueError:
            return None
        return await self._by_password(users, name, password)

    async def _by_password(self, users: Users, name: str, password: str) -> User | None:
        if not users.passwords:
            return None  # a file with only tokens does not need argon2-cffi
        user, digest = users.passwords.get(name, (None, _nobody()))
        async with self._checks:
            matches = await asyncio.to_thread(password_matches, digest, password)
        return user if matches else None

    def _current(self) -> Users | None:
        """The users, read again if the file has changed. If it is broken, the former users stay."""
        now_ms = self._clock.monotonic_ms()
        if self._file is None or now_ms - self._looked_ms < LOOK_MS:
            return self._users
        self._looked_ms = now_ms
        stamp = _stamp(self._file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._users = _load(self._file)
            except ConfigError as error:
                logger.warning("the users stay as they were: %s", error)
            else:
                self._seen.clear()
        return self._users


def check_exposed(host: str, file: Path | None, setting: str) -> None:
    """Refuse to serve other machines without a users file."""
    if file is None and not is_loopback(host):
        raise ConfigError(
            f"{setting} is {host}, which other machines reach: that needs a users file, so that "
            "not everybody may do everything; 127.0.0.1 does without one"
        )


def check_login(host: str, file: Path | None, setting: str) -> None:
    """Check the users file before a service starts."""
    check_exposed(host, file, setting)
    HttpAccess(file)  # raises if the file is missing or wrong


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def password_hash(password: str) -> str:
    return str(_argon2().hash(password))


def token_hash(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def password_matches(digest: str, password: str) -> bool:
    hasher = _argon2()  # first, because it reports a missing library
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return bool(hasher.verify(digest, password))
    except (VerificationError, InvalidHashError):
        return False


def _argon2() -> "PasswordHasher":
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError:
        raise ConfigError(f"a users file needs argon2-cffi: {install('registry')}") from None
    return PasswordHasher()


_NOBODY: list[str] = []


def _nobody() -> str:
    """The hash of a random password: an unknown name must take as long to check as a known one."""
    if not _NOBODY:
        _NOBODY.append(password_hash(secrets.token_hex()))
    return _NOBODY[0]


def _load(file: Path) -> Users:
    try:
        users = parse_users(file.read_text(), str(file))
    except OSError as error:
        raise ConfigError(f"users file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"users file {file}: is not text") from None
    if users.passwords:
        _argon2()  # report a missing library at start-up
    return users


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def check_local(request: HttpRequest) -> None:
    """Refuse requests from other machines, and from pages of other sites in a local browser."""
    try:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:  # an unclosed bracket
        host = ""
    if not is_loopback(host) or is_of_another_site(request):
        raise Denied(
            HTTPStatus.FORBIDDEN, "without a users file only this machine may ask, by 127.0.0.1"
        )


def is_of_another_site(request: HttpRequest) -> bool:
    """Whether a page of another site sent the request. Only browsers send an Origin header."""
    origin = request.headers.get("origin")
    try:
        return bool(origin) and urlsplit(origin).netloc != request.headers.get("host")
    except ValueError:
        return True
