"""The source of a client's OAUTHBEARER token: a file, or an issuer's endpoint.

An endpoint gets the client's own id and secret (RFC 6749, client credentials); its token is reused
until four fifths of its lifetime are over. A file is read for each login. Both block.
"""

import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from penstock.errors import ConfigError

URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - its name
SCOPE: Final = "sasl.oauthbearer.scope"
SYNONYMS: Final = {
    "sasl.oauthbearer.token.endpoint": URL,
    "sasl.oauthbearer.client.id": CLIENT_ID,
    "sasl.oauthbearer.client.secret": CLIENT_SECRET,
}
"""Librdkafka's names."""
SETTINGS: Final = (URL, CLIENT_ID, CLIENT_SECRET, SCOPE)

MAX_BYTES: Final = 1 << 20
_FRESH_SHARE: Final = 0.8


def local_path(name: str, url: str) -> Path | None:
    """The file that a URL names; None for an HTTP URL. `name` is the setting."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path:
        return Path(unquote(parts.path))
    if parts.scheme in {"http", "https"} and parts.hostname:
        return None
    raise ConfigError(f"{name} must be https://…, http://… or file:///…")


def read_file(name: str, path: Path) -> bytes:
    """Read a small file that a setting names."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{name}: cannot read {path}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A plain value, which Spark sends to executors. `prefix` precedes the settings' names."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    trusted: str | None = None
    prefix: str = ""

    def read(self) -> str:
        """A token for one login."""
        name = self.prefix + URL
        path = local_path(name, self.url)
        if path is not None:
            token = read_file(name, path).decode("ascii", "replace").strip()
            if not token or not token.isprintable() or " " in token:
                raise ConfigError(f"{name}: {path} does not hold a token")
            return token
        kept = _kept.get(self)
        if kept is None or kept[1] <= time.monotonic():
            kept = _kept[self] = self._ask(name)
        return kept[0]

    def _ask(self, name: str) -> tuple[str, float]:
        # RFC 6749, 2.3.1: both are encoded before they are joined.
        pair = f"{quote(self.client_id, safe='')}:{quote(self.client_secret, safe='')}"
        headers = {
            "Authorization": f"Basic {b64encode(pair.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        from penstock.client.endpoint import ask, shown  # late: rarely needed

        answer = ask(name, self.url, urlencode(form).encode(), headers, self.trusted)
        try:
            found = msgspec.json.decode(answer, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ConfigError(f"{name}: {shown(self.url)} answers without a token") from None
        return found.access_token, time.monotonic() + found.expires_in * _FRESH_SHARE


class _Answer(msgspec.Struct):
    access_token: str
    expires_in: float = 0


_kept: dict[TokenSource, tuple[str, float]] = {}
"""Tokens of this process, and until when each may be reused."""


def token_source(
    given: Mapping[str, str], options: Mapping[str, str], trusted: str | None, prefix: str = ""
) -> TokenSource:
    """Made from settings and the login module's options, which Kafka's older clients use."""
    url = given.get(URL)
    if not url:
        raise ConfigError(
            f"there is no {prefix}{URL}: a file (file:///…) or an endpoint that gives tokens"
        )
    client_id = given.get(CLIENT_ID) or options.get("clientId", "")
    secret = given.get(CLIENT_SECRET) or options.get("clientSecret", "")
    is_file = local_path(prefix + URL, url) is not None
    if not is_file and not (client_id and secret):
        from penstock.client.endpoint import shown

        raise ConfigError(
            f"there is no {prefix}{CLIENT_ID} with its secret, by which {shown(url)} knows us"
        )
    scope = given.get(SCOPE) or options.get("scope", "")
    trusted = options.get("ssl.truststore.location") or trusted
    return TokenSource(url, client_id, secret, scope, trusted, prefix)
