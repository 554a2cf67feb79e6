"""The users file: who may log in to a service, and in which role. Pure.

Each line has a user's name, role, and credential:

    alice admin $argon2id$v=19$m=65536,t=3,p=4$…
    ci operator sha256:9f86d081884c7d65…
    bob@example.com viewer oidc

The first is the hash of a password, for HTTP Basic; the second is the hash of a token, for Bearer.
Tokens are long and random, so a plain hash is enough. The third user logs in at an identity
provider, which only the console supports; other services refuse such a user.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from penstock.errors import ConfigError

TOKEN: Final = re.compile(r"sha256:([0-9a-f]{64})")
PASSWORD: Final = "$argon2id$"  # noqa: S105  the prefix of such a hash
NAME: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
OIDC: Final = "oidc"
OIDC_NAME: Final = re.compile(r"[A-Za-z0-9._@|+:/=~-]{1,255}")
"""The provider chooses the names: `auth0|5f7c…`, `bob+test@example.com`."""


class Role(IntEnum):
    """Each role includes the rights of those before it."""

    VIEWER = 1
    """Reads."""
    OPERATOR = 2
    """Does daily work: registers schemas, and makes deletions that can be undone."""
    ADMIN = 3
    """Changes rules, and deletes permanently."""


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Users:
    """The contents of a users file."""

    passwords: dict[str, tuple[User, str]]
    """Users and their password hashes, by name."""
    tokens: tuple[tuple[User, str], ...]
    oidc: dict[str, User]
    """Users by their name at the identity provider."""

    def by_token(self, token: str) -> User | None:
        given = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for user, digest in self.tokens:  # compare all, so that the time reveals nothing
            if hmac.compare_digest(given, digest):
                found = user
        return found


def parse_users(text: str, source: str) -> Users:
    """Parse a users file; errors name `source`."""
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
            raise ConfigError(f"{at}: the role {role!r} is not one of viewer, operator, admin")
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
            raise ConfigError(f"{at}: the hash is not one of {PASSWORD}…, sha256:… and {OIDC}")
    if not names:
        raise ConfigError(f"{source} names no user, so nobody could log in")
    return Users(passwords, tuple(tokens), oidc)
