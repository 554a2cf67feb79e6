"""SASL PLAIN: one message, and Kafka's errors for wrong ones."""

import pytest

from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.plain import PlainExchange

USERS = {"alice": "secret", "zoë": "pässword"}


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0zoë\0pässword".encode(), "zoë"),
    ],
)
def test_the_right_password_logs_in(token: bytes, user: str) -> None:
    step = PlainExchange(USERS).step(token)
    assert (step.answer, step.user) == (b"", user)


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (b"\0alice\0wrong", "Invalid username or password"),
        (b"\0nobody\0secret", "Invalid username or password"),
        (b"\0nobody\0\xc3\xa4", "Invalid username or password"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"admin\0alice\0secret", "different from username"),
    ],
)
def test_a_refusal_has_kafkas_text(token: bytes, says: str) -> None:
    with pytest.raises(AuthenticationFailed, match=says) as caught:
        PlainExchange(USERS).step(token)
    assert not isinstance(caught.value, InvalidCredentials)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", [b"", b"alice\0secret", b"\0a\0b\0c", b"\0\xff\0x"])
def test_a_malformed_message_is_refused(token: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        PlainExchange(USERS).step(token)


def test_an_empty_stored_password_allows_no_login() -> None:
    with pytest.raises(AuthenticationFailed, match="password not specified"):
        PlainExchange({"alice": ""}).step(b"\0alice\0")
