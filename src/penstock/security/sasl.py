"""The server's half of SASL exchanges, as one step per message of the client."""

from typing import Final, Protocol

import msgspec

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class SaslStep(msgspec.Struct, frozen=True):
    """What to answer; `user` is set when the client has proved who it is."""

    answer: bytes
    user: str | None = None
    expires_ms: int | None = None
    """When what the client has shown ends, in the clock's time; None: never."""
    token_id: str | None = None
    """The delegation token that it has shown, if it has."""


class SaslExchange(Protocol):
    """One login. `step` raises `AuthenticationFailed`; the exchange is then over."""

    def step(self, token: bytes) -> SaslStep: ...
