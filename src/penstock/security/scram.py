"""SASL SCRAM (RFC 5802) with SHA-256 and SHA-512: the password is never sent.

The server stores a salted digest. Its part of a login is three HMACs, some microseconds; the
iterations are needed only to make a credential from a password.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from penstock.security.delegation_token import DelegationToken
from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.sasl import SaslStep
from penstock.security.scram_parameters import DEFAULT_PARAMETERS, ScramParameters, unknown_user

SALT_BYTES: Final = 16
"""Size of new salts."""
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
MOST_BYTES: Final = 1 << 14
"""Longest message: enough for any useful name and nonce. A listener accepts longer messages, and
parsing one would block the loop.
"""
MOST_TOLD: Final = 100
"""Most characters of a client's user name in the log, since strangers choose it."""


class ScramMechanism(IntEnum):
    """SCRAM mechanisms, numbered as in AlterUserScramCredentials."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism(self) -> str:
        """Its SASL name, which is also the name of a user's setting."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()

    @property
    def digest_size(self) -> int:
        return hashlib.new(self.digest).digest_size


SCRAM_MECHANISMS: Final[Mapping[str, ScramMechanism]] = {
    each.mechanism: each for each in ScramMechanism
}


class ScramCredential(msgspec.Struct, frozen=True):
    """The server's knowledge of a password. With it, anyone can impersonate the server."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations)"


def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password. Takes milliseconds: never on the event loop."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def credential(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    digest = mechanism.digest
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    return ScramCredential(salt, stored_key, server_key, iterations)


def stored_text(known: ScramCredential) -> str:
    """A credential in the format that Kafka 3.9 stores in ZooKeeper."""
    return (
        f"salt={_base64(known.salt)},stored_key={_base64(known.stored_key)},"
        f"server_key={_base64(known.server_key)},iterations={known.iterations}"
    )


def parse_stored(mechanism: ScramMechanism, text: str) -> ScramCredential | None:
    """The credential in a stored text; None if the text is damaged, or the credential too weak."""
    parts = dict(each.strip().partition("=")[::2] for each in text.split(","))
    try:
        found = ScramCredential(
            b64decode(parts["salt"], validate=True),
            b64decode(parts["stored_key"], validate=True),
            b64decode(parts["server_key"], validate=True),
            int(parts["iterations"]),
        )
    except (KeyError, ValueError):
        return None
    keys = {len(found.stored_key), len(found.server_key)}
    if keys != {mechanism.digest_size} or not found.salt or found.iterations < MIN_ITERATIONS:
        return None
    return found


_NAME: Final = r"(?:[^=,\0]++|=2C|=3D)++"  # possessive: matches long names without backtracking
_EXTENSIONS: Final = r"(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*)"
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+){_EXTENSIONS})"
)
_FINAL: Final = re.compile(
    rf"(?P<unsigned>c=(?P<channel>{_BASE64}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_NO_BINDING: Final = "biws"
"""`n,,` in base64, which Java's client sends whatever its first message said."""


TOKEN_EXTENSION: Final = "tokenauth"  # noqa: S105 - no password
FindToken: TypeAlias = Callable[[str], tuple[ScramCredential, DelegationToken] | None]


def no_token(_token_id: str) -> tuple[ScramCredential, DelegationToken] | None:
    return None


class ScramExchange:
    """`find` returns a user's credential for this mechanism, `find_token` a delegation token and
    its credential.

    `nonce` is random; `secret` is the same on all brokers, for ever. An unknown user gets a salt
    derived from `secret` and the name, of a kind that known users have (`parameters`), and fails
    only at the end, like a wrong password: so no client learns which users exist.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], ScramCredential | None],
        nonce: str,
        secret: bytes,
        find_token: FindToken = no_token,
        parameters: Callable[[], Collection[ScramParameters]] = lambda: (DEFAULT_PARAMETERS,),
    ) -> None:
        self._parameters = parameters
        self._mechanism, self._find, self._nonce, self._secret = mechanism, find, nonce, secret
        self._find_token = find_token
        self._by_token = False
        self._known: ScramCredential | None = None
        self._name = self._first = self._gs2 = self._told = ""

    def step(self, token: bytes) -> SaslStep:
        if len(token) > MOST_BYTES:
            raise InvalidCredentials(f"SCRAM: a message of {len(token)} bytes")
        try:
            message = token.decode()
        except UnicodeDecodeError:
            raise InvalidCredentials("SCRAM: the message is not UTF-8") from None
        return self._challenge(message) if not self._first else self._verdict(message)

    def _challenge(self, message: str) -> SaslStep:
        match = _FIRST.fullmatch(message)
        if match is None:
            raise InvalidCredentials("SCRAM: the first message is malformed")
        # Kafka's only extension is tokenauth; it ignores others too.
        extensions = dict(each.split("=", 1) for each in match["extensions"].split(",")[1:])
        self._by_token = extensions.get(TOKEN_EXTENSION, "").lower() == "true"
        name = _unescaped(match["name"])
        if match["authzid"] is not None and _unescaped(match["authzid"]) != name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self._name, self._gs2 = name, match["gs2"]
        self._told = repr(name[:MOST_TOLD])
        self._known, _ = self._found()
        # Computed for known users too, so that the time taken reveals nothing.
        salt, iterations = unknown_user(
            self._secret, self._mechanism.mechanism, name, self._parameters()
        )
        if self._known is not None:
            salt, iterations = self._known.salt, self._known.iterations
        self._nonce = match["nonce"] + self._nonce
        answer = f"r={self._nonce},s={_base64(salt)},i={iterations}"
        self._first = f"{match['bare']},{answer}"
        return SaslStep(answer.encode())

    def _found(self) -> tuple[ScramCredential | None, DelegationToken | None]:
        """What the client has to prove, as it is now."""
        if self._by_token:
            return self._find_token(self._name) or (None, None)
        return self._find(self._name), None

    def _verdict(self, message: str) -> SaslStep:
        match = _FINAL.fullmatch(message)
        if match is None:
            raise InvalidCredentials("SCRAM: the final message is malformed")
        if match["channel"] not in {_NO_BINDING, _base64(self._gs2.encode())}:
            raise InvalidCredentials("SCRAM: the channel is not that of the first message")
        # The whole nonce: a prefix or suffix would let an old message be replayed (CVE-2024-56128).
        if not hmac.compare_digest(match["nonce"].encode(), self._nonce.encode()):
            raise InvalidCredentials("SCRAM: the nonce is not that of this login")
        known, digest = self._known, self._mechanism.digest
        now, token = self._found()
        if known is None or now != known:  # it may have been changed since the first message
            raise InvalidCredentials(f"SCRAM: there is no user or token {self._told}")
        signed = f"{self._first},{match['unsigned']}".encode()
        signature = hmac.digest(known.stored_key, signed, digest)
        try:
            proof = b64decode(match["proof"], validate=True)
        except ValueError:
            raise InvalidCredentials("SCRAM: the proof is not base64") from None
        if len(proof) != len(signature):
            raise InvalidCredentials("SCRAM: the proof has another length")
        client_key = (int.from_bytes(proof) ^ int.from_bytes(signature)).to_bytes(len(proof))
        if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), known.stored_key):
            raise InvalidCredentials(f"SCRAM: a wrong password of {self._told}")
        verifier = hmac.digest(known.server_key, signed, digest)
        answer = f"v={_base64(verifier)}".encode()
        if token is None:
            return SaslStep(answer, self._name)
        return SaslStep(answer, token.owner.name, token.expires_ms, token.id)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
