"""Delegation tokens (KIP-48): logins that a user gives to programs, for a limited time.

A token is an id and its HMAC under a secret of the cluster. A client with both logs in by SCRAM, as
the token's owner. The HMAC is not stored: brokers compute it. Pure; time is an argument.
"""

import hmac
from base64 import b64encode
from collections.abc import Collection
from typing import Final

import msgspec

from penstock.errors import ErrorCode, KafkaError
from penstock.security.principal import Principal

NEVER_MS: Final = -1
"""Takes the place of a time in an error response."""


class TokenRefused(KafkaError):
    """A request about a token is refused; `code` goes to the client."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code  # type: ignore[misc]  # see KafkaError


class DelegationToken(msgspec.Struct, frozen=True):
    """A token as every broker stores it."""

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int
    """It cannot be renewed beyond this time."""
    expires_ms: int

    @property
    def principals(self) -> tuple[Principal, ...]:
        """The principals that may renew, expire and see it."""
        return (self.owner, self.requester, *self.renewers)

    def is_of(self, principal: Principal) -> bool:
        return principal in self.principals

    def has_ended(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms


class TokenLimits(msgspec.Struct, frozen=True):
    """Limits for the lifetime of tokens."""

    max_lifetime_ms: int
    expiry_time_ms: int


def token_hmac(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def token_password(secret: str, token_id: str) -> str:
    """The password with which a program uses the token."""
    return b64encode(token_hmac(secret, token_id)).decode()


def issued(
    token_id: str,
    owner: Principal,
    requester: Principal,
    renewers: Collection[Principal],
    max_lifetime_ms: int,
    limits: TokenLimits,
    now_ms: int,
) -> DelegationToken:
    """A new token. A lifetime of zero or less means the maximum."""
    life_ms = limits.max_lifetime_ms
    if max_lifetime_ms > 0:
        life_ms = min(max_lifetime_ms, life_ms)
    max_ms = now_ms + life_ms
    expires_ms = min(max_ms, now_ms + limits.expiry_time_ms)
    return DelegationToken(token_id, owner, requester, tuple(renewers), now_ms, max_ms, expires_ms)


def renewed(
    token: DelegationToken, by: Principal, period_ms: int, limits: TokenLimits, now_ms: int
) -> DelegationToken:
    """The token with a later expiry time; a negative period means the default."""
    _check_owner(token, by)
    _check_life(token, now_ms)
    return _ending(token, now_ms + (limits.expiry_time_ms if period_ms < 0 else period_ms))


def expired(
    token: DelegationToken, by: Principal, period_ms: int, now_ms: int
) -> DelegationToken | None:
    """The token with another expiry time; None for a negative period: it expires at once."""
    _check_owner(token, by)
    if period_ms < 0:
        return None
    _check_life(token, now_ms)
    return _ending(token, now_ms + period_ms)


def _ending(token: DelegationToken, end_ms: int) -> DelegationToken:
    return msgspec.structs.replace(token, expires_ms=min(token.max_ms, end_ms))


def _check_owner(token: DelegationToken, by: Principal) -> None:
    if not token.is_of(by):
        raise TokenRefused(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, f"{by} neither owns nor renews the token"
        )


def _check_life(token: DelegationToken, now_ms: int) -> None:
    if token.has_ended(now_ms):
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
