"""Delegation tokens: their lifetime, who may change it, and logins with them."""

import pytest

from penstock.client.sasl import Login, exchange
from penstock.errors import ErrorCode
from penstock.security.delegation_token import (
    DelegationToken,
    TokenLimits,
    TokenRefused,
    expired,
    issued,
    renewed,
    token_password,
)
from penstock.security.errors import InvalidCredentials
from penstock.security.principal import user
from penstock.security.sasl import SaslStep
from penstock.security.scram import ScramExchange, ScramMechanism, credential, salted

LIMITS = TokenLimits(max_lifetime_ms=1000, expiry_time_ms=100)
ALICE, BOB, CAROL, DAVE = map(user, ("alice", "bob", "carol", "dave"))


def made(max_lifetime_ms: int = -1) -> DelegationToken:
    return issued("id", ALICE, BOB, [CAROL], max_lifetime_ms, LIMITS, now_ms=5000)


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expires_ms"),
    [
        (-1, 6000, 5100),
        (0, 6000, 5100),
        (1, 5001, 5001),
        (5000, 6000, 5100),
        (50, 5050, 5050),
        (200, 5200, 5100),
    ],
)
def test_a_new_token_lives_no_longer_than_allowed(
    asked_ms: int, max_ms: int, expires_ms: int
) -> None:
    token = made(asked_ms)
    assert (token.max_ms, token.expires_ms) == (max_ms, expires_ms)


@pytest.mark.parametrize("by", [ALICE, BOB, CAROL])
def test_owner_requester_and_renewers_renew_up_to_the_maximum_lifetime(by: object) -> None:
    assert isinstance(by, type(ALICE))
    assert renewed(made(), by, -1, LIMITS, 5050).expires_ms == 5150
    assert renewed(made(), by, 5000, LIMITS, 5050).expires_ms == 6000
    ended = expired(made(), by, 10, 5050)
    assert ended is not None
    assert ended.expires_ms == 5060
    assert expired(made(), by, -1, 9999) is None


def test_a_period_of_zero_ends_a_token_now() -> None:
    """A negative period is another thing: the default, or an immediate end."""
    assert renewed(made(), ALICE, 0, LIMITS, 5050).expires_ms == 5050
    ended = expired(made(), ALICE, 0, 5050)
    assert ended is not None
    assert ended.expires_ms == 5050


@pytest.mark.parametrize(("max_lifetime_ms", "last_ms"), [(-1, 5100), (50, 5050)])
def test_a_token_holds_at_the_millisecond_of_its_end(max_lifetime_ms: int, last_ms: int) -> None:
    token = made(max_lifetime_ms)
    assert not token.has_ended(last_ms)
    assert token.has_ended(last_ms + 1)


def test_other_users_can_neither_renew_nor_expire_a_token() -> None:
    with pytest.raises(TokenRefused) as caught:
        renewed(made(), DAVE, -1, LIMITS, 5050)
    assert caught.value.code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    with pytest.raises(TokenRefused) as caught:
        expired(made(), DAVE, -1, 5050)
    assert caught.value.code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_expired_token_stays_expired() -> None:
    with pytest.raises(TokenRefused) as caught:
        renewed(made(), ALICE, -1, LIMITS, 5101)
    assert caught.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(TokenRefused) as caught:
        expired(made(), ALICE, 10, 5101)
    assert caught.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED


def logged_in(login: Login) -> SaslStep:
    mechanism = ScramMechanism.SCRAM_SHA_256
    derived = salted(mechanism, token_password("secret", "id"), b"salt", 4096)
    known = credential(mechanism, derived, b"salt", 4096)
    server = ScramExchange(
        mechanism,
        lambda _: None,
        "server",
        b"of this broker",
        lambda name: (known, made()) if name == "id" else None,
    )
    client = exchange(login, "client")
    message = next(client)
    while True:
        step = server.step(message)
        try:
            message = client.send(step.answer)
        except StopIteration:
            return step


def test_the_bearer_is_the_owner_until_the_token_expires() -> None:
    password = token_password("secret", "id")
    step = logged_in(Login("SCRAM-SHA-256", "id", password, is_token=True))
    assert (step.user, step.expires_ms, step.token_id) == ("alice", 5100, "id")


@pytest.mark.parametrize(
    "login",
    [
        Login("SCRAM-SHA-256", "id", token_password("other", "id"), is_token=True),
        Login("SCRAM-SHA-256", "other", token_password("secret", "id"), is_token=True),
        Login("SCRAM-SHA-256", "id", token_password("secret", "id")),
    ],
)
def test_a_wrong_hmac_id_or_kind_of_login_is_refused(login: Login) -> None:
    with pytest.raises(InvalidCredentials):
        logged_in(login)
