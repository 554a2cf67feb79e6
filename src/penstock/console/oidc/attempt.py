"""A login that a browser has begun and that the provider has not answered yet. Pure.

The server keeps no state: a signed cookie in the browser has a random text, its expiry and the page
to go to. State, nonce and PKCE verifier are derived from the random text and our key, so the cookie
reveals none of them, and no other browser can complete the login.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

ATTEMPT_MS: Final = 10 * 60_000
COOKIE: Final = "penstock_login"
LONGEST_PAGE: Final = 2_000
"""The longest page address: browsers limit cookies to 4 KB."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The values of one login that go to the provider and are checked on its return."""

    state: str
    nonce: str
    verifier: str
    page: str

    @property
    def challenge(self) -> str:
        """S256 of RFC 7636."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())


class Attempts:
    """Creates and verifies attempts. `key` is random and lives as long as the console."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def begin(self, page: str, chance: str, now_ms: int) -> tuple[Attempt, str]:
        """A new attempt and its cookie; `chance` is a random text."""
        page = page if len(page) <= LONGEST_PAGE else "/"
        body = f"{chance}.{now_ms + ATTEMPT_MS}.{_encoded(page.encode())}"
        return self._attempt(chance, page), f"{body}.{self._derived('cookie', body)}"

    def found(self, cookie: str, state: str, now_ms: int) -> Attempt | None:
        """The attempt of this cookie; None if it is forged, expired or has another state."""
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
