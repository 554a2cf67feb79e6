"""ID tokens (OpenID Connect Core 1.0, 3.1.3.7): the identity of a login at a provider. Pure."""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.security.access_token import VerificationKey, claimed_second, signed_claims
from penstock.security.oauthbearer import InvalidToken

SKEW_S: Final = 60
EMAIL: Final = "email"


@dataclass(frozen=True, slots=True)
class ExpectedLogin:
    """Required claims of an ID token, besides a valid signature."""

    issuer: str
    client_id: str
    nonce: str
    """The nonce of the login that the browser started."""
    claim: str


def login_name(
    token: str,
    keys: Sequence[VerificationKey],
    expected: ExpectedLogin,
    now_s: float,
    on_unknown_key: Callable[[], None] = lambda: None,
) -> str:
    """The name of the user who logged in; raises `InvalidToken` unless the whole token is valid."""
    claims = signed_claims(token, keys, on_unknown_key)
    _check_parties(claims, expected)
    _check_times(claims, now_s)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(
        nonce.encode("utf-8", "replace"), expected.nonce.encode()
    ):
        raise InvalidToken("the ID token is of another login (nonce)")
    name = claims.get(expected.claim)
    if not isinstance(name, str) or not name:
        raise InvalidToken(f"the ID token has no {expected.claim}")
    if expected.claim == EMAIL and claims.get("email_verified") is not True:
        raise InvalidToken("the provider has not verified the email address")
    return name


def _check_parties(claims: dict[str, Any], expected: ExpectedLogin) -> None:
    if claims.get("iss") != expected.issuer:
        raise InvalidToken("the ID token is of another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if expected.client_id not in audiences:
        raise InvalidToken("the ID token is for another client (aud)")
    party = claims.get("azp")
    if party != expected.client_id and (party is not None or len(audiences) > 1):
        raise InvalidToken("the ID token was issued to another client (azp)")


def _check_times(claims: dict[str, Any], now_s: float) -> None:
    expires_s, issued_s = claimed_second(claims, "exp"), claimed_second(claims, "iat")
    if expires_s is None or issued_s is None:
        raise InvalidToken(f"the ID token has no {'exp' if expires_s is None else 'iat'}")
    if now_s - SKEW_S >= expires_s:
        raise InvalidToken("the ID token has expired")
    starts_s = max(issued_s, claimed_second(claims, "nbf") or 0.0)
    if now_s + SKEW_S < starts_s:
        raise InvalidToken("the ID token does not hold yet")
