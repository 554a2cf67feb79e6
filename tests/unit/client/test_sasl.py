"""The client's side of SASL, by the examples of RFC 5802 and RFC 7677."""

import pytest

from penstock.client.sasl import ClientAuthenticationFailed, Login, exchange

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
LOGIN = Login("SCRAM-SHA-256", "user", "pencil")


def test_plain_is_one_message() -> None:
    words = exchange(Login("PLAIN", "user", "pencil"), "")
    assert next(words) == b"\0user\0pencil"
    with pytest.raises(StopIteration):
        words.send(b"")


def test_scram_exchanges_the_messages_of_the_rfc() -> None:
    words = exchange(LOGIN, NONCE)
    assert next(words) == b"n,,n=user,r=" + NONCE.encode()
    assert words.send(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        words.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_name_with_commas_is_escaped() -> None:
    assert next(exchange(Login("SCRAM-SHA-512", "a,b=c", "p"), "n")) == b"n,,n=a=2Cb=3Dc,r=n"


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"r=other,s=W22Z,i=4096", "nonce"),
        (b"r=" + NONCE.encode() + b",s=W22Z,i=4096", "nonce"),
        (SERVER_FIRST.replace(b"4096", b"0"), "0 iterations"),
        (SERVER_FIRST.replace(b"4096", b"999999999"), "999999999 iterations"),
        (SERVER_FIRST.replace(b"4096", b"-5"), "is not an iteration count"),
        (SERVER_FIRST.replace(b"W22Z", b"!!!!"), "salt is not base64"),
        (b"", "nonce"),
        (b"\xff\xfe", "nonce"),
    ],
)
def test_a_malformed_server_message_fails_authentication(first: bytes, words: str) -> None:
    said = exchange(LOGIN, NONCE)
    next(said)
    with pytest.raises(ClientAuthenticationFailed, match=words):
        said.send(first)


@pytest.mark.parametrize(
    ("final", "words"),
    [
        (b"e=invalid-proof", "invalid-proof"),
        (b"v=AAAA", "does not know the password"),
        (b"", "does not know the password"),
    ],
)
def test_a_server_that_does_not_know_the_password_fails_authentication(
    final: bytes, words: str
) -> None:
    said = exchange(LOGIN, NONCE)
    next(said)
    said.send(SERVER_FIRST)
    with pytest.raises(ClientAuthenticationFailed, match=words):
        said.send(final)
