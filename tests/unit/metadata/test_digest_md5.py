"""DIGEST-MD5 by the example of RFC 2831, with ZooKeeper's service."""

import hashlib

import pytest

from penstock.metadata.zookeeper.digest_md5 import URI, DigestLogin, LoginRefused

CHALLENGE = (
    b'realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",qop="auth",charset=utf-8,algorithm=md5-sess'
)


def md5(text: str | bytes) -> bytes:
    return hashlib.md5(text.encode() if isinstance(text, str) else text).digest()


def proof(method: str, password: str = "secret") -> str:
    start = md5(f"kafka:zk-sasl-md5:{password}") + b":OA6MG9tEQGm2hh:mine"
    end = md5(f"{method}:{URI}").hex()
    return md5(f"{md5(start).hex()}:OA6MG9tEQGm2hh:00000001:mine:auth:{end}").hex()


def test_client_and_server_prove_that_they_know_the_password() -> None:
    login = DigestLogin("kafka", "secret", "mine")
    answer = login.answer(CHALLENGE).decode()
    assert f"response={proof('AUTHENTICATE')}" in answer
    assert 'username="kafka",realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh"' in answer
    assert "secret" not in answer
    login.check(f"rspauth={proof('')}".encode())


@pytest.mark.parametrize(
    "verdict", [b"", b"rspauth=", f"rspauth={proof('', 'other')}".encode(), b"\xff"]
)
def test_a_server_without_the_password_is_refused(verdict: bytes) -> None:
    login = DigestLogin("kafka", "secret", "mine")
    login.answer(CHALLENGE)
    with pytest.raises(LoginRefused):
        login.check(verdict)


@pytest.mark.parametrize(
    "challenge",
    [b"", b'realm="x"', b'nonce="a",algorithm=md5', b'nonce="a",qop="auth-conf"', b'nonce="a'],
)
def test_an_unexpected_challenge_is_refused(challenge: bytes) -> None:
    with pytest.raises(LoginRefused):
        DigestLogin("kafka", "secret", "mine").answer(challenge)
