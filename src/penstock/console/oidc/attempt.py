"""A login that a browser has begun and the provider has not answered yet. Pure.

Nothing is kept in memory: the browser has a cookie with a random text, its end and the page to go
to, signed. State, nonce and PKCE's verifier follow from the random text and our key, so the cookie
tells none of them, and no other browser can end the login.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

ATTEMPT_MS: Final = 10 * 60_000
COOKIE: Final = "penstock_login"
LONGEST_PAGE: Final = 2_000
"""Of the page to go to: browsers keep cookies of 4 KB."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the provider gets, and what comes back from it."""

    state: str
    nonce: str
    verifier: str
    page: str

    @property
    def challenge(self) -> str:
        """S256 of RFC 7636."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())


class Attempts:
    """Signs by `key`, which is random and ends with the console."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def begin(self, page: str, chance: str, now_ms: int) -> tuple[Attempt, str]:
        """An attempt and its cookie; `chance` is random."""
        page = page if len(page) <= LONGEST_PAGE else "/"
        body = f"{chance}.{now_ms + ATTEMPT_MS}.{_encoded(page.encode())}"
        return self._attempt(chance, page), f"{body}.{self._derived('cookie', body)}"

    def found(self, cookie: str, state: str, now_ms: int) -> Attempt | None:
        """The attempt of the browser, if the state is its own, and it is not too late."""
        body, _, signature = cookie.rpartition(".")
        if not _equal(signature, self._derived("cookie", body)):
            return None
        chance, until_ms, page = body.split(".")
        attempt = self._attempt(chance, urlsafe_b64decode(page + "=" * (-len(page) % 4)).decode())
        return attempt if _equal(state, attempt.state) and now_ms < int(until_ms) else None

    def _attempt(self, chance: str, page: str) -> Attempt:
        state, nonce, verifier = (
            self._derived(each, chance) for each in ("state", "nonce", "verifier")
        )
        return Attempt(state, nonce, verifier, page)

    def _derived(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
