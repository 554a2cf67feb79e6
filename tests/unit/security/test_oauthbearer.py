"""SASL OAUTHBEARER: one message, and the two rounds of a refusal."""

import pytest

from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.oauthbearer import (
    MOST_BYTES,
    REFUSED,
    AccessToken,
    InvalidToken,
    OAuthBearerExchange,
)
from penstock.security.sasl import SaslStep


def only_good(token: str) -> AccessToken:
    if token != "good":
        raise InvalidToken("the token has expired")
    return AccessToken("a,b", 1000)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,a=a=2Cb,\x01auth=bearer  good\x01\x01",
        b"n,,\x01auth=Bearer good\x01traceId=12 3\x01\x01",
        b"n,,\x01host=h\x01port=1\x01auth=Bearer good\x01\x01",
    ],
)
def test_a_good_token_logs_in(message: bytes) -> None:
    assert OAuthBearerExchange(only_good).step(message) == SaslStep(b"", "a,b", 1000)


def test_a_refusal_is_a_status_then_an_error() -> None:
    exchange = OAuthBearerExchange(only_good)
    assert exchange.step(b"n,,\x01auth=Bearer bad\x01\x01") == SaslStep(REFUSED)
    with pytest.raises(AuthenticationFailed, match="invalid_token") as caught:
        exchange.step(b"\x01")
    assert caught.value.because == "OAUTHBEARER: the token has expired"


def test_a_refused_client_cannot_try_again() -> None:
    exchange = OAuthBearerExchange(only_good)
    exchange.step(b"n,,\x01auth=Bearer bad\x01\x01")
    with pytest.raises(InvalidCredentials):
        exchange.step(b"n,,\x01auth=Bearer good\x01\x01")


def test_another_users_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="different from the token's"):
        OAuthBearerExchange(only_good).step(b"n,a=admin,\x01auth=Bearer good\x01\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"\xff",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good bad\x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01\x01more",
        b"n,b=x,\x01auth=Bearer good\x01\x01",
    ],
)
def test_a_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        OAuthBearerExchange(only_good).step(message)


def test_a_message_that_would_block_the_loop_is_not_parsed() -> None:
    message = b"n,,\x01" + b"a=b\x01" * (MOST_BYTES // 4) + b"auth=Bearer good\x01\x01"
    with pytest.raises(InvalidCredentials, match="malformed"):
        OAuthBearerExchange(only_good).step(message)
