"""The users file: who may log in to a service, and in which role. Pure.

A line for each user: name, role, and what proves who it is:

    alice admin $argon2id$v=19$m=65536,t=3,p=4$…
    ci operator sha256:9f86d081884c7d65…
    bob@example.com viewer oidc

The first is the hash of a password, for HTTP's Basic; the second that of a token, for Bearer.
Tokens are random and long, so a plain hash keeps them. The third has logged in at an identity
provider, which only the console asks: elsewhere nothing proves who that is.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from penstock.errors import ConfigError

TOKEN: Final = re.compile(r"sha256:([0-9a-f]{64})")
PASSWORD: Final = "$argon2id$"  # noqa: S105  how such a hash begins
NAME: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
OIDC: Final = "oidc"
OIDC_NAME: Final = re.compile(r"[A-Za-z0-9._@|+:/=~-]{1,255}")
"""Providers choose the names: `auth0|5f7c…`, `bob+test@example.com`."""


class Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 1
    """Reads."""
    OPERATOR = 2
    """Does the daily work: registers schemas, and deletes what can be restored."""
    ADMIN = 3
    """Changes rules, and deletes for good."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who has logged in."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Users:
    """A users file."""

    passwords: dict[str, tuple[User, str]]
    """Users and the hashes of their passwords, by name."""
    tokens: tuple[tuple[User, str], ...]
    oidc: dict[str, User]
    """By the name that the identity provider gives them."""

    def by_token(self, token: str) -> User | None:
        given = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for user, digest in self.tokens:  # all of them: the time must not tell which
            if hmac.compare_digest(given, digest):
                found = user
        return found


def parse_users(text: str, source: str) -> Users:
    """`source` is named in errors."""
    passwords: dict[str, tuple[User, str]] = {}
    tokens = []
    oidc: dict[str, User] = {}
    names = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        at = f"{source}, line {number}"
        is_oidc = words[2:] == [OIDC]
        form = OIDC_NAME if is_oidc else NAME
        if len(words) != 3 or not form.fullmatch(words[0]):
            raise ConfigError(f"{at}: must be NAME ROLE HASH")
        name, role, proof = words
        if role.upper() not in Role.__members__:
            raise ConfigError(f"{at}: the role {role!r} is none of viewer, operator, admin")
        if name in names:
            raise ConfigError(f"{at}: {name} is there twice")
        names.add(name)
        user = User(name, Role[role.upper()])
        token = TOKEN.fullmatch(proof)
        if token:
            tokens.append((user, token[1]))
        elif proof.startswith(PASSWORD):
            passwords[name] = (user, proof)
        elif is_oidc:
            oidc[name] = user
        else:
            raise ConfigError(f"{at}: the hash is none of {PASSWORD}…, sha256:… and {OIDC}")
    if not names:
        raise ConfigError(f"{source} names no user, so nobody could log in")
    return Users(passwords, tuple(tokens), oidc)
