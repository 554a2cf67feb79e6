"""ID tokens of a login: the name in a valid one, and everything that must be refused."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.security.access_token import parse_keys
from penstock.security.id_token import SKEW_S, ExpectedLogin, login_name
from penstock.security.oauthbearer import InvalidToken
from support.security.tokens import own_key_set, token

NOW_S = 1_000_000.0
KEYS = parse_keys("keys", own_key_set())
EXPECTED = ExpectedLogin("https://issuer", "console", "n-1", "sub")


def name_in(expected: ExpectedLogin = EXPECTED, **changes: Any) -> str:
    claims = {"aud": "console", "iss": "https://issuer", "nonce": "n-1", **changes}
    return login_name(token(now_s=NOW_S, **claims), KEYS, expected, NOW_S)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": ["console"]},
        {"aud": ["other", "console"], "azp": "console"},
        {"azp": "console"},
        {"iat": NOW_S - 900, "exp": NOW_S - SKEW_S + 1},
        {"iat": NOW_S + SKEW_S},
        {"nbf": NOW_S + SKEW_S},
    ],
)
def test_a_valid_token_has_the_name(changes: dict[str, Any]) -> None:
    assert name_in(**changes) == "alice"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"iss": "https://other"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another client .aud"),
        ({"aud": None}, "another client .aud"),
        ({"aud": ["console", "other"]}, "another client .azp"),
        ({"aud": ["console", "other"], "azp": "other"}, "another client .azp"),
        ({"azp": "other"}, "another client .azp"),
        ({"exp": None}, "no exp"),
        ({"iat": None}, "no iat"),
        ({"iat": NOW_S - 900, "exp": NOW_S - SKEW_S}, "expired"),
        ({"iat": NOW_S + SKEW_S + 1, "exp": NOW_S + 900}, "does not hold yet"),
        ({"nbf": NOW_S + SKEW_S + 1}, "does not hold yet"),
        ({"nonce": "n-2"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"nonce": 1}, "nonce"),
        ({"sub": ""}, "no sub"),
        ({"sub": 7}, "no sub"),
    ],
)
def test_an_invalid_token_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidToken, match=says):
        name_in(**changes)


def test_an_email_counts_only_if_the_provider_has_verified_it() -> None:
    by_email = replace(EXPECTED, claim="email")
    assert name_in(by_email, email="a@b", email_verified=True) == "a@b"
    for verified in (False, None, "true", 1):
        with pytest.raises(InvalidToken, match="not verified"):
            name_in(by_email, email="a@b", email_verified=verified)
