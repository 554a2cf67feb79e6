"""The server's half of SASL exchanges, one step per client message."""

from typing import Final, Protocol

import msgspec

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class SaslStep(msgspec.Struct, frozen=True):
    """The answer to send; `user` is set when the client is authenticated."""

    answer: bytes
    user: str | None = None
    expires_ms: int | None = None
    """When the client's credential expires, in the clock's time; None: never."""
    token_id: str | None = None
    """The delegation token that the client used, if it did."""


class SaslExchange(Protocol):
    """One login. `step` raises `AuthenticationFailed`, which ends the exchange."""

    def step(self, token: bytes) -> SaslStep: ...
