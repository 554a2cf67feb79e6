"""The client's half of SASL exchanges, without I/O: PLAIN (RFC 4616), SCRAM (RFC 5802) and
OAUTHBEARER (RFC 7628).

An exchange is a generator: it yields messages to send, and receives the server's responses. It ends
when authentication succeeded, and raises `ClientAuthenticationFailed` if the server cannot prove
its identity.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.client.token import TokenSource
from penstock.errors import ErrorCode, KafkaError

Exchange: TypeAlias = Generator[bytes, bytes, None]

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", *_HASHES, OAUTHBEARER)
MAX_ITERATIONS: Final = 1 << 20
"""Limit for the iteration count, which the server chooses; more would only cost time."""


RENEWED_SHARE: Final = 0.85
"""A client logs in again after this share of its session (KIP-368), as Kafka's clients do."""


class ClientAuthenticationFailed(KafkaError):
    """The server rejected us, or could not prove that it knows the password."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


@dataclass(frozen=True, slots=True)
class Login:
    """User, password and mechanism; or the source of a bearer token."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: TokenSource | None = None
    is_token: bool = False
    """Whether user and password are a delegation token: its id and its HMAC in base64."""

    def __str__(self) -> str:
        return f"login of {self.username!r}" if self.username else f"{self.mechanism} login"


def exchange(login: Login, nonce: str, token: str = "") -> Exchange:
    """The client's messages; `nonce` must be fresh, printable and without a comma."""
    if login.mechanism == "PLAIN":
        return _plain(login)
    if login.mechanism == OAUTHBEARER:
        return _oauthbearer(token)
    return _scram(login, nonce, _HASHES[login.mechanism])


def next_message(messages: Exchange, answer: bytes) -> bytes | None:
    """The next message to send; None: the login is complete."""
    try:
        return messages.send(answer)
    except StopIteration:
        return None


def _plain(login: Login) -> Exchange:
    yield f"\0{login.username}\0{login.password}".encode()


def _oauthbearer(token: str) -> Exchange:
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        yield b"\x01"  # the server answers this with the error


def _scram(login: Login, nonce: str, digest: str) -> Exchange:
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first_bare = f"n={name},r={nonce}" + (",tokenauth=true" if login.is_token else "")
    server_first = (yield f"n,,{first_bare}".encode()).decode("utf-8", "replace")
    fields = _fields(server_first)
    combined, salt, iterations = fields.get("r", ""), fields.get("s", ""), fields.get("i", "")
    if not combined.startswith(nonce) or combined == nonce:
        raise ClientAuthenticationFailed("SCRAM: the server's nonce does not continue ours")
    if not iterations.isascii() or not iterations.isdigit():
        raise ClientAuthenticationFailed(f"SCRAM: {iterations!r} is not an iteration count")
    if not 0 < int(iterations) <= MAX_ITERATIONS:
        raise ClientAuthenticationFailed(f"SCRAM: the server demands {iterations} iterations")
    salted = hashlib.pbkdf2_hmac(
        digest, login.password.encode(), _decoded("salt", salt), int(iterations)
    )
    final_bare = f"c=biws,r={combined}"
    signed = f"{first_bare},{server_first},{final_bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_message = yield f"{final_bare},p={b64encode(proof).decode()}".encode()
    server_final = _fields(server_message.decode("utf-8", "replace"))
    if "e" in server_final:
        raise ClientAuthenticationFailed(f"SCRAM: {server_final['e']}")
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    if not hmac.compare_digest(_decoded("signature", server_final.get("v", "")), expected):
        raise ClientAuthenticationFailed("SCRAM: the server does not know the password")


def _fields(message: str) -> dict[str, str]:
    return {each[:1]: each[2:] for each in message.split(",") if each[1:2] == "="}


def _decoded(what: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ClientAuthenticationFailed(f"SCRAM: the server's {what} is not base64") from None
