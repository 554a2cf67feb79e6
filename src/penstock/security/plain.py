"""SASL PLAIN (RFC 4616): the client sends its user and password in one message."""

import hmac
from collections.abc import Mapping

from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.sasl import SaslStep


class PlainExchange:
    """`users` come from the listener's login module."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def step(self, token: bytes) -> SaslStep:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise InvalidCredentials("PLAIN: the message is not UTF-8") from None
        if len(parts) != 3:
            raise InvalidCredentials(f"PLAIN: expected 3 parts, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        expected = self._users.get(name)
        # Compared even for an unknown user, so that the time taken reveals nothing.
        matches = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not matches:
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id not in {"", name}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        return SaslStep(b"", name)
