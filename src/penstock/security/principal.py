"""The identity of a connection's client, in Kafka's form `User:alice`."""

from typing import Final

import msgspec

from penstock.errors import ConfigError


class Principal(msgspec.Struct, frozen=True, order=True):
    """A type and a name. Kafka itself creates only principals of type User."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


USER: Final = "User"
ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""The principal of a connection without login and certificate."""


def user(name: str) -> Principal:
    return Principal(USER, name)


def parse_principal(text: str) -> Principal | None:
    """The principal in the text; None unless it is `type:name`."""
    kind, colon, name = text.partition(":")
    return Principal(kind, name) if kind and colon and name else None


def super_users(text: str) -> frozenset[Principal]:
    """Parse `super.users`, separated by semicolons, since a certificate's name has commas."""
    found = set()
    for each in filter(None, (part.strip() for part in text.split(";"))):
        principal = parse_principal(each)
        if principal is None:
            raise ConfigError(f"super.users: {each!r} must be type:name, such as User:admin")
        found.add(principal)
    return frozenset(found)
