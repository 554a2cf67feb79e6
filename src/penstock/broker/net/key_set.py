"""The public keys of a listener's token issuer (JWKS), from a file or a URL; they may change.

Keys stay in use until new ones have been read, so that logins still work while the issuer is down.
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.client.token import local_path, read_file
from penstock.clock import Clock
from penstock.config.listener_security import ListenerSecurity
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.security.jaas import parse_jaas
from penstock.security.oauthbearer import MECHANISM, AccessToken

if TYPE_CHECKING:
    from penstock.security.access_token import VerificationKey

logger = logging.getLogger(__name__)

CHECK_S: Final = 1.0
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"


class KeySet:
    """Verifies access tokens. Reads the keys at start-up; `follow_keys` reads them again."""

    def __init__(self, security: ListenerSecurity, clock: Clock) -> None:
        self._config = config = security.config(MECHANISM)
        self._clock, self.listener = clock, security.listener
        self._trusted = _checked_module(security)
        url = config.sasl_oauthbearer_jwks_endpoint_url
        if not url:
            raise ConfigError(
                f"listener {self.listener} offers {MECHANISM}, but there is no {_URL} with the "
                "keys to check tokens by; tokens without a signature are never accepted"
            )
        self._url, self._name = url, security.name(_URL, MECHANISM)
        self._path = local_path(self._name, url)
        if url.startswith("http:"):
            logger.warning("%s: keys over http can be replaced on their way; use https", self._name)
        try:  # late: only this mechanism needs it
            from penstock.security import access_token
        except ImportError:
            raise ConfigError(
                f"listener {self.listener} offers {MECHANISM}, which needs more packages: pip "
                "install 'penstock[oauth]'"
            ) from None
        self._tokens = access_token
        self._expected = access_token.Expectations(
            config.sasl_oauthbearer_expected_audience,
            config.sasl_oauthbearer_expected_issuer,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
            config.sasl_oauthbearer_scope_claim_name,
        )
        self._read_ms = clock.monotonic_ms()
        self._pause_ms, self._is_wanted = 0, False
        self._stamp = _stamp(self._path)
        self._keys = self._read()

    def check(self, token: str) -> AccessToken:
        """The verified content of a token; raises `InvalidToken`."""
        now_s = self._clock.now_ms() / 1000
        return self._tokens.checked(token, self._keys, self._expected, now_s, self._want)

    def _want(self) -> None:
        """Called when a token names an unknown key: the issuer may have a new one."""
        self._is_wanted = True

    @property
    def is_due(self) -> bool:
        """Whether keys should be read again."""
        if self._path is not None:
            return _stamp(self._path) != self._stamp
        since_ms = self._clock.monotonic_ms() - self._read_ms
        if self._pause_ms:
            return since_ms >= self._pause_ms
        config = self._config
        pause_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms
        if self._is_wanted and since_ms >= pause_ms:
            return True
        return since_ms >= config.sasl_oauthbearer_jwks_endpoint_refresh_ms

    async def refresh(self) -> None:
        config = self._config
        self._read_ms, self._is_wanted = self._clock.monotonic_ms(), False
        self._stamp = _stamp(self._path)
        try:
            self._keys = await asyncio.to_thread(self._read)
        except ConfigError as error:
            longest_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms
            first_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms
            self._pause_ms = min(longest_ms, self._pause_ms * 2 or max(first_ms, 1))
            logger.warning("listener %s keeps its token keys: %s", self.listener, error)
        else:
            self._pause_ms = 0
            logger.info("listener %s has %s", self.listener, counted(len(self._keys), "token key"))

    def _read(self) -> "tuple[VerificationKey, ...]":
        """Blocks."""
        if self._path is not None:
            return self._tokens.parse_keys(
                f"{self._name}: {self._path}", read_file(self._name, self._path)
            )
        from penstock.client.endpoint import ask  # late: few brokers fetch their keys over HTTP

        data = ask(self._name, self._url, trusted=self._trusted)
        return self._tokens.parse_keys(f"{self._name}: its answer", data)


def _checked_module(security: ListenerSecurity) -> str | None:
    """The truststore for the key source, if the login module names one; also checks the module's
    options.
    """
    text = security.config(MECHANISM).sasl_jaas_config
    if text is None:
        return None
    name = security.name("sasl.jaas.config", MECHANISM)
    options = parse_jaas(name, text.value, MECHANISM).options
    for each in options:
        if each.lower().startswith("unsecured"):
            raise ConfigError(f"{name} has {each}: tokens without a signature are never accepted")
    return options.get("ssl.truststore.location")


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


async def follow_keys(key_sets: Iterable[KeySet]) -> None:
    """Read keys again when it is time, until cancelled."""
    followed = list(key_sets)
    while True:
        await asyncio.sleep(CHECK_S)
        for each in followed:
            if each.is_due:
                await each.refresh()
