"""An issuer of access tokens for tests: its keys as a JWKS file, and tokens signed with them."""

import time
from functools import cache
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str = "ec") -> ec.EllipticCurvePrivateKey:
    assert name
    return ec.generate_private_key(ec.SECP256R1())


def as_jwk(key: Any, key_id: str, **more: str) -> dict[str, Any]:
    """The public half of a key."""
    algorithm = jwt.algorithms.RSAAlgorithm if hasattr(key, "key_size") else None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        found = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        assert algorithm is not None
        found = algorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, "kid": key_id, **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"keys": keys})


def own_key_set() -> bytes:
    return key_set(as_jwk(ec_key(), "one"), as_jwk(rsa_key(), "two"))


def token(
    subject: str = "alice",
    *,
    key: Any = None,
    key_id: str | None = "one",
    algorithm: str = "ES256",
    lifetime_s: float = 300,
    now_s: float | None = None,
    **claims: Any,
) -> str:
    """A token of the issuer. A claim that is None is left out."""
    now_s = time.time() if now_s is None else now_s
    said = {"sub": subject, "iat": int(now_s), "exp": int(now_s + lifetime_s), **claims}
    headers = {} if key_id is None else {"kid": key_id}
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key or ec_key(), algorithm, headers)
