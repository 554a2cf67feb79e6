"""Access tokens (JWT, RFC 7519), checked against the issuer's public keys (JWKS, RFC 7517).

Only signatures by a private key count: `none` and secrets shared with the issuer (HS256, …) are
refused, and a key works only with algorithms of its own kind. Otherwise a public key could be used
as a shared secret.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jwt
import msgspec

from penstock.errors import ConfigError
from penstock.security.oauthbearer import AccessToken, InvalidToken

ALGORITHMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""Accepted algorithms, with the kind of key that each needs."""
MAX_TOKEN_CHARS: Final = 1 << 16
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_MIN_RSA_BITS: Final = 2048
_LAST_SECOND: Final = 1 << 40


class VerificationKey(msgspec.Struct, frozen=True):
    """A public key of the issuer."""

    key_id: str | None
    kind: str
    curve: str | None
    algorithm: str | None
    """The only algorithm it may be used with; None: all of its kind."""
    key: Any

    def serves(self, algorithm: str) -> bool:
        if self.algorithm not in {None, algorithm} or ALGORITHMS.get(algorithm) != self.kind:
            return False
        return algorithm not in _CURVES or self.curve == _CURVES[algorithm]


class Expectations(msgspec.Struct, frozen=True):
    """Required claims of a token, besides a valid signature."""

    audience: tuple[str, ...] = ()
    """The token must name one of these; empty: any."""
    issuer: str | None = None
    skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"


def parse_keys(name: str, data: bytes) -> tuple[VerificationKey, ...]:
    """The public keys of a key set. Keys of other kinds are ignored; a set without usable keys is
    an error.

    `name` names the source of the text in errors.
    """
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError(f"{name} is not JSON") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise ConfigError(f'{name} is not a key set: it has no list "keys"')
    keys = tuple(filter(None, map(_key, listed)))
    if not keys:
        raise ConfigError(
            f"{name} has no public key to check signatures by (RSA of at least {_MIN_RSA_BITS} "
            "bits, EC or Ed25519)"
        )
    return keys


def _key(listed: object) -> VerificationKey | None:
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig" or "d" in listed:
        return None
    kind, algorithm, key_id = listed.get("kty"), listed.get("alg"), listed.get("kid")
    if not all(each is None or isinstance(each, str) for each in (kind, algorithm, key_id)):
        return None
    if kind not in {"RSA", "EC", "OKP"} or (algorithm is not None and algorithm not in ALGORITHMS):
        return None
    try:
        key = jwt.PyJWK.from_dict(listed).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if kind == "RSA" and key.key_size < _MIN_RSA_BITS:
        return None
    return VerificationKey(key_id, kind, listed.get("crv"), algorithm, key)


def checked(
    token: str,
    keys: Sequence[VerificationKey],
    expected: Expectations,
    now_s: float,
    on_unknown_key: Callable[[], None] = lambda: None,
) -> AccessToken:
    """The token's subject and expiry, if it is valid now; otherwise raises `InvalidToken`."""
    return _subject(signed_claims(token, keys, on_unknown_key), expected, now_s)


def signed_claims(
    token: str, keys: Sequence[VerificationKey], on_unknown_key: Callable[[], None]
) -> dict[str, Any]:
    """The claims of a token that the issuer signed. Nothing else is checked."""
    if len(token) > MAX_TOKEN_CHARS:
        raise InvalidToken(f"the token has {len(token)} characters")
    signatures = jwt.PyJWS()
    try:
        header = signatures.get_unverified_header(token)
        algorithm, key_id = str(header.get("alg")), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise InvalidToken("the token is not signed by an accepted algorithm")
        if "crit" in header:
            raise InvalidToken("the token needs an extension of JWT")
        usable = [key for key in keys if key.serves(algorithm) and key_id in {None, key.key_id}]
        if not usable:
            on_unknown_key()
            raise InvalidToken("the token is signed by a key that the issuer does not list")
        if len(usable) > 1:
            raise InvalidToken("the token does not say which of the issuer's keys has signed it")
        payload = signatures.decode_complete(token, usable[0].key, [algorithm])["payload"]
        claims = msgspec.json.decode(payload)
    except jwt.InvalidSignatureError:
        raise InvalidToken("the signature of the token is wrong") from None
    except (jwt.PyJWTError, msgspec.DecodeError, ValueError, TypeError, RecursionError):
        raise InvalidToken("the token is malformed") from None
    if not isinstance(claims, dict):
        raise InvalidToken("the token is malformed")
    return claims


def _subject(claims: dict[str, Any], expected: Expectations, now_s: float) -> AccessToken:
    expires_s, issued_s = claimed_second(claims, "exp"), claimed_second(claims, "iat")
    if expires_s is None or issued_s is None:
        raise InvalidToken(f"the token has no {'exp' if expires_s is None else 'iat'}")
    if now_s - expected.skew_s >= expires_s:
        raise InvalidToken("the token has expired")
    starts_s = claimed_second(claims, "nbf")
    if starts_s is not None and now_s + expected.skew_s < starts_s:
        raise InvalidToken("the token does not hold yet (nbf)")
    if issued_s > expires_s:
        raise InvalidToken("the token was issued after its end")
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise InvalidToken("the token is of another issuer than sasl.oauthbearer.expected.issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if expected.audience and not any(each in audiences for each in expected.audience):
        raise InvalidToken("the token is for another sasl.oauthbearer.expected.audience")
    subject = claims.get(expected.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidToken(f"the token has no {expected.subject_claim}")
    _check_scope(claims.get(expected.scope_claim), expected.scope_claim)
    return AccessToken(subject.strip(), int(expires_s * 1000))


def _check_scope(scope: object, name: str) -> None:
    """Scopes grant nothing here, as in Kafka; but a token with a malformed scope is refused."""
    scopes = scope if isinstance(scope, list) else [] if scope is None else [scope]
    if not all(isinstance(each, str) for each in scopes):
        raise InvalidToken(f"the {name} of the token is not text")


def claimed_second(claims: dict[str, Any], name: str) -> float | None:
    """A time claim of a token, in seconds; None if it is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"{name} of the token is not a number")
    if not math.isfinite(value) or not 0 <= value < _LAST_SECOND:
        raise InvalidToken(f"{name} of the token is out of range")
    return float(value)
