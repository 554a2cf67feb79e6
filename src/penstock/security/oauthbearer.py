"""SASL OAUTHBEARER (RFC 7628): the client presents a token signed by an issuer.

A refusal takes two rounds: first a status in JSON, which the client answers with a single byte,
then the error.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.sasl import SaslStep

MECHANISM: Final = "OAUTHBEARER"
REFUSED: Final = b'{"status":"invalid_token"}'
MOST_BYTES: Final = 1 << 17
"""Longest message: enough for any useful token with its extensions. A listener accepts longer
messages, and parsing one would block the loop.
"""
GOT_IT: Final = b"\x01"
"""The client's answer to a refusal."""

_NAME: Final = r"(?:[^=,\0]++|=2C|=3D)++"  # possessive: matches long names without backtracking
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01"
_MESSAGE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.A-Za-z0-9]+=*)", re.ASCII)


class AccessToken(msgspec.Struct, frozen=True):
    """The contents of a verified token."""

    subject: str
    expires_ms: int


class InvalidToken(Exception):
    """The token is not accepted; the text is for the broker's log and never quotes it."""


class OAuthBearerExchange:
    """`check` returns the contents of a token, or raises `InvalidToken`."""

    def __init__(self, check: Callable[[str], AccessToken]) -> None:
        self._check, self._refusal = check, ""

    def step(self, token: bytes) -> SaslStep:
        if self._refusal:
            if token != GOT_IT:
                raise InvalidCredentials(f"OAUTHBEARER: {self._refusal}")
            raise AuthenticationFailed(REFUSED.decode(), because=f"OAUTHBEARER: {self._refusal}")
        name, presented = parse_message(token)
        try:
            known = self._check(presented)
        except InvalidToken as error:
            self._refusal = str(error)
            return SaslStep(REFUSED)
        if name not in {None, known.subject}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name"
            )
        return SaslStep(b"", known.subject, known.expires_ms)


def parse_message(message: bytes) -> tuple[str | None, str]:
    """The requested authorization id, if any, and the token. Extensions are ignored."""
    try:
        match = _MESSAGE.fullmatch(message.decode()) if len(message) <= MOST_BYTES else None
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise InvalidCredentials("OAUTHBEARER: the message is malformed")
    pairs = [each.partition("=")[::2] for each in match["pairs"].split("\x01")[:-1]]
    given = [value for key, value in pairs if key == "auth"]
    auth = _AUTH.fullmatch(given[0]) if len(given) == 1 else None
    if auth is None or auth["scheme"].lower() != "bearer":
        raise InvalidCredentials("OAUTHBEARER: the message has no bearer token")
    name = match["authzid"]
    return None if name is None else _unescaped(name), auth["token"]


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
