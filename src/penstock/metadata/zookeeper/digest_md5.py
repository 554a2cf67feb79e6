"""SASL DIGEST-MD5 (RFC 2831), the client's half: the only login with a password that ZooKeeper has.

It is weak today, since an eavesdropper can try passwords: use it over TLS. Pure.
"""

import hashlib
import hmac
import re
from typing import Final

REALM: Final = "zk-sasl-md5"
URI: Final = f"zookeeper/{REALM}"
_FIELD: Final = re.compile(r'\s*([A-Za-z-]+)=(?:"((?:\\.|[^"\\])*)"|([^",]*))\s*(?:,|$)')


class LoginRefused(Exception):
    """The server's message is wrong, or it does not know the password."""


class DigestLogin:
    """One login: `answer` the server's challenge, then `check` that it knows the password too."""

    def __init__(self, username: str, password: str, nonce: str) -> None:
        self._username, self._password, self._nonce = username, password, nonce
        self._expected = b""

    def answer(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        server_nonce = fields.get("nonce")
        if not server_nonce or fields.get("algorithm", "md5-sess") != "md5-sess":
            raise LoginRefused("it did not ask for DIGEST-MD5")
        if "auth" not in fields.get("qop", "auth").split(","):
            raise LoginRefused("it wants more than a login")
        realm = fields.get("realm", REALM)
        start = _md5(f"{self._username}:{realm}:{self._password}".encode())
        secret = _md5(start + f":{server_nonce}:{self._nonce}".encode()).hex()
        middle = f"{server_nonce}:00000001:{self._nonce}:auth"

        def proof(method: str) -> str:
            asked = _md5(f"{method}:{URI}".encode()).hex()
            return _md5(f"{secret}:{middle}:{asked}".encode()).hex()

        self._expected = proof("").encode()
        return (
            f'charset=utf-8,username="{_escaped(self._username)}",realm="{_escaped(realm)}",'
            f'nonce="{_escaped(server_nonce)}",nc=00000001,cnonce="{self._nonce}",'
            f'digest-uri="{URI}",maxbuf=65536,response={proof("AUTHENTICATE")},qop=auth'
        ).encode()

    def check(self, verdict: bytes) -> None:
        rspauth = _fields(verdict).get("rspauth", "").encode()
        if not hmac.compare_digest(rspauth, self._expected):
            raise LoginRefused("it does not know the password")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324 - what the mechanism is made of


def _fields(message: bytes) -> dict[str, str]:
    found, at, text = {}, 0, message.decode("utf-8", "replace")
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None:
            raise LoginRefused("its message is malformed")
        quoted = match[2]
        found[match[1]] = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = match.end()
    return found


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
