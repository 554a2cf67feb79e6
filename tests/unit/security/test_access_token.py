"""Access tokens: the content of a valid one, and everything that must be refused."""

import base64
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from penstock.errors import ConfigError
from penstock.security.access_token import Expectations, checked, parse_keys
from penstock.security.oauthbearer import AccessToken, InvalidToken
from support.security.tokens import as_jwk, ec_key, key_set, own_key_set, rsa_key, token

NOW_S = 1_000_000.0
KEYS = parse_keys("keys", own_key_set())
EXPECTED = Expectations(("kafka",), "https://issuer", 30)


def made(**changes: Any) -> str:
    return token(now_s=NOW_S, **{"aud": "kafka", "iss": "https://issuer", **changes})


def unsigned(header: dict[str, Any], claims: bytes = b"{}", signature: bytes = b"") -> str:
    parts = (msgspec.json.encode(header), claims, signature)
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"key": rsa_key(), "key_id": "two", "algorithm": "RS256"},
        {"key": rsa_key(), "key_id": "two", "algorithm": "PS512"},
        {"key_id": None},
        {"aud": ["other", "kafka"]},
        {"scope": "a b"},
        {"scope": ["a"]},
        {"nbf": NOW_S + 30},
        {"iat": NOW_S + 300},
        {"exp": NOW_S - 29, "iat": NOW_S - 100},
    ],
)
def test_a_valid_token_has_its_subject_and_expiry(changes: dict[str, Any]) -> None:
    expires_ms = int(changes.get("exp", NOW_S + 300) * 1000)
    assert checked(made(**changes), KEYS, EXPECTED, NOW_S) == AccessToken("alice", expires_ms)


def test_the_subject_may_be_in_another_claim() -> None:
    expected = Expectations(subject_claim="email")
    assert checked(made(email="a@b"), KEYS, expected, NOW_S).subject == "a@b"


PUBLIC_PEM = (
    rsa_key()
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)
SHARED = jwt.api_jws.PyJWS()


def confused() -> str:
    """HS256 with the public key as the shared secret: the classic key-confusion attack."""
    import hashlib
    import hmac

    start = unsigned({"alg": "HS256", "kid": "two"}, b'{"sub":"admin"}').rpartition(".")[0]
    made = hmac.digest(PUBLIC_PEM, start.encode(), hashlib.sha256)
    return f"{start}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (unsigned({"alg": "none"}), "accepted algorithm"),
        (unsigned({"alg": "None", "kid": "one"}), "accepted algorithm"),
        (unsigned({"alg": ["none"]}), "accepted algorithm"),
        (confused(), "accepted algorithm"),
        (unsigned({"alg": "RS256", "kid": "one"}), "does not list"),
        (unsigned({"alg": "ES384", "kid": "one"}), "does not list"),
        (unsigned({"alg": "ES256", "kid": "one"}), "signature"),
        (unsigned({"alg": "ES256", "kid": "one", "crit": ["x"]}), "extension|malformed"),
        (unsigned({"alg": "ES256", "kid": 7}), "malformed"),
        (unsigned({"alg": "ES256", "kid": "one"}, signature=b"\0" * 64), "signature"),
        (made(key=ec_key("stranger")), "signature"),
        (made(key_id="three"), "does not list"),
        (made(exp=NOW_S - 30), "expired"),
        (made(exp=None), "no exp"),
        (made(iat=None), "no iat"),
        (made(iat=NOW_S + 400), "issued after its end"),
        (made(nbf=NOW_S + 31), "does not hold yet"),
        (made(exp=1 << 60), "out of range"),
        (made(exp=1e400), "malformed"),
        (made(exp=True), "not a number"),
        (made(exp="soon"), "not a number"),
        (made(iss="https://other"), "another issuer"),
        (made(iss=None), "another issuer"),
        (made(aud="other"), "expected.audience"),
        (made(aud=None), "expected.audience"),
        (made(aud=["other", 7]), "expected.audience"),
        (made(subject=""), "no sub"),
        (made(sub=7), "no sub"),
        (made(scope=7), "not text"),
        ("", "malformed"),
        ("a.b", "malformed"),
        ("a.b.c.d.e", "malformed"),
        ("..", "malformed"),
        (".".join(["x" * 30_000] * 3), "characters"),
        (unsigned({"alg": "ES256"}) + "=", "malformed|signature"),
    ],
)
def test_a_bad_token_is_refused(bad: str, says: str) -> None:
    with pytest.raises(InvalidToken, match=says) as caught:
        checked(bad, KEYS, EXPECTED, NOW_S)
    assert not bad or bad not in str(caught.value)


@pytest.mark.parametrize("deep", ["header", "claims"])
def test_deep_json_is_malformed_and_causes_no_recursion_error(deep: str) -> None:
    nested = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    if deep == "header":
        parts = [base64.urlsafe_b64encode(nested).decode().rstrip("="), "e30", "AA"]
        bad = ".".join(parts)
    else:
        bad = jwt.PyJWS().encode(nested, ec_key(), "ES256", {"kid": "one"})
    with pytest.raises(InvalidToken, match=r"characters|malformed"):
        checked(bad[: 1 << 16], KEYS, EXPECTED, NOW_S)


def test_a_token_without_a_key_id_needs_an_issuer_with_one_key() -> None:
    two = parse_keys("keys", key_set(as_jwk(ec_key(), "a"), as_jwk(ec_key("other"), "b")))
    with pytest.raises(InvalidToken, match="which of the issuer's keys"):
        checked(made(key_id=None), two, EXPECTED, NOW_S)


def test_an_unknown_key_triggers_a_refresh_of_the_keys() -> None:
    asked: list[int] = []
    with pytest.raises(InvalidToken):
        checked(made(key_id="new"), KEYS, EXPECTED, NOW_S, lambda: asked.append(1))
    assert asked == [1]


def test_a_key_is_used_only_with_its_own_algorithm() -> None:
    keys = parse_keys("keys", key_set(as_jwk(rsa_key(), "two", alg="RS512")))
    with pytest.raises(InvalidToken, match="does not list"):
        checked(made(key=rsa_key(), key_id="two", algorithm="RS256"), keys, EXPECTED, NOW_S)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not JSON"),
        (b'"\x87"', "is not JSON"),
        (b"[]", "not a key set"),
        (b'{"keys":{}}', "not a key set"),
        (b'{"keys":[]}', "no public key"),
        (b'{"keys":[7,{"kty":"EC"},{"kty":"RSA","n":"AQ","e":"AQAB"}]}', "no public key"),
        (b'{"keys":[{"kty":["RSA"]},{"kty":"RSA","alg":["RS256"]}]}', "no public key"),
        (key_set({**as_jwk(ec_key(), "one"), "kid": ["one"]}), "no public key"),
        (b'{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"x"}]}', "no public key"),
        (key_set(as_jwk(ec_key(), "one", use="enc")), "no public key"),
        (key_set(as_jwk(ec_key(), "one", alg="HS256")), "no public key"),
        (key_set(as_jwk(rsa_key(1024), "one")), "no public key"),
    ],
)
def test_a_key_set_without_public_keys_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_keys("jwks.json", data)
