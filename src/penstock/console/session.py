"""Browser sessions: a signed cookie names the user, and a CSRF token proves that our page sent
the request. Pure.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

SESSION_MS: Final = 12 * 3_600_000
COOKIE: Final = "penstock_session"


class Sessions:
    """Signs cookies with `key` and the password's hash, so a new password ends old sessions."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._ended: dict[str, int] = {}

    def start(self, name: str, proof: str, nonce: str, now_ms: int) -> str:
        """A new cookie; `proof` is the hash of the user's password, `nonce` is random."""
        encoded = urlsafe_b64encode(name.encode()).decode().rstrip("=")
        body = f"{encoded}.{now_ms + SESSION_MS}.{nonce}"
        return f"{body}.{self._signature('session', body, proof)}"

    def name(self, cookie: str) -> str:
        """The name that a cookie claims, unverified; see `holds`."""
        encoded = cookie.partition(".")[0]
        try:
            return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except ValueError:
            return ""

    def holds(self, cookie: str, proof: str, now_ms: int) -> bool:
        body, _, signature = cookie.rpartition(".")
        wanted = self._signature("session", body, proof)
        if not hmac.compare_digest(signature.encode(), wanted.encode()):
            return False
        return int(body.split(".")[1]) > now_ms and cookie not in self._ended

    def end(self, cookie: str, now_ms: int) -> None:
        """Invalidate a valid cookie, until it expires anyway."""
        self._ended = {each: until for each, until in self._ended.items() if until > now_ms}
        self._ended[cookie] = int(cookie.split(".")[1])

    def csrf(self, cookie: str) -> str:
        """The token that changing requests must repeat. Cookie "": the token without a login."""
        return self._signature("csrf", cookie, "")

    def is_csrf(self, token: str, cookie: str) -> bool:
        return hmac.compare_digest(token.encode(), self.csrf(cookie).encode())

    def _signature(self, purpose: str, text: str, proof: str) -> str:
        signed = "\0".join((purpose, text, proof)).encode()
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()
