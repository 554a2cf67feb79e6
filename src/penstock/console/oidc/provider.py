"""The identity provider's client: discovery, keys and token requests.

A response may have at most one megabyte; redirects are not followed. Metadata and keys are cached
for an hour.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.endpoint import ask
from penstock.clock import Clock
from penstock.config.oidc import OidcConfig, is_safe_url
from penstock.console.oidc.attempt import Attempt
from penstock.console.oidc.errors import ProviderFailed
from penstock.errors import ConfigError
from penstock.security.access_token import VerificationKey, parse_keys
from penstock.security.id_token import EMAIL, ExpectedLogin, login_name
from penstock.security.oauthbearer import InvalidToken

FRESH_MS: Final = 3_600_000
PAUSE_MS: Final = 60_000
"""The shortest time between two requests for keys because of an unknown key."""
RETRY_MS: Final = 5_000
"""After a failure, requests fail at once for so long, so that waiting logins do not each retry."""
ANSWER_S: Final = 20.0
AT_A_TIME: Final = 4
WELL_KNOWN: Final = "/.well-known/openid-configuration"

T = TypeVar("T")


class Metadata(msgspec.Struct, frozen=True):
    """The fields that the console needs of OpenID Connect Discovery 1.0, section 3."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class _Known(NamedTuple):
    metadata: Metadata
    keys: tuple[VerificationKey, ...]
    read_ms: int


class Provider:
    """Contacted only when a user logs in, so that the console starts without it."""

    def __init__(self, config: OidcConfig, clock: Clock) -> None:
        self.config, self._clock = config, clock
        self._known: _Known | None = None
        self._failed: tuple[ProviderFailed, int] | None = None
        self._looking = asyncio.Lock()
        self._asking = asyncio.Semaphore(AT_A_TIME)
        # A separate pool: the loop's default threads check passwords.
        self._threads = ThreadPoolExecutor(AT_A_TIME, "identity-provider")

    async def login_url(self, attempt: Attempt) -> str:
        """The address where the browser goes to log in."""
        config = self.config
        endpoint = (await self._current(FRESH_MS)).metadata.authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": config.client_id,
            "redirect_uri": config.redirect_uri,
            "scope": {"sub": "openid", EMAIL: "openid email"}.get(config.claim, "openid profile"),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def name(self, attempt: Attempt, code: str, issuer: str | None) -> str:
        """The name of the user who has logged in; raises `ProviderFailed` or `InvalidToken`.

        `issuer` is the `iss` parameter of the callback (RFC 9207).
        """
        known, config = await self._current(FRESH_MS), self.config
        is_needed = known.metadata.authorization_response_iss_parameter_supported
        if issuer != config.issuer and (is_needed or issuer is not None):
            raise InvalidToken("the answer is of another issuer (iss)")
        token = await self._id_token(known.metadata, attempt, code)
        expected = ExpectedLogin(config.issuer, config.client_id, attempt.nonce, config.claim)
        unknown: list[bool] = []
        try:
            return self._name(token, known, expected, lambda: unknown.append(True))
        except InvalidToken:
            if not unknown:
                raise
        # The provider may have a new key: read the keys again, unless they are recent.
        return self._name(token, await self._current(PAUSE_MS), expected)

    def _name(
        self,
        token: str,
        known: _Known,
        expected: ExpectedLogin,
        on_unknown_key: Callable[[], None] = lambda: None,
    ) -> str:
        now_s = self._clock.now_ms() / 1000
        return login_name(token, known.keys, expected, now_s, on_unknown_key)

    async def _id_token(self, metadata: Metadata, attempt: Attempt, code: str) -> str:
        config, headers = self.config, {"Accept": "application/json"}
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": config.redirect_uri,
            "client_id": config.client_id,
            "code_verifier": attempt.verifier,
        }
        if config.client_secret is not None:
            secret, ways = (
                config.client_secret.value,
                metadata.token_endpoint_auth_methods_supported,
            )
            if "client_secret_basic" in ways or "client_secret_post" not in ways:
                # RFC 6749, 2.3.1: both are encoded before they are joined.
                pair = f"{quote(config.client_id, safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = secret
        data = await self._ask(metadata.token_endpoint, urlencode(form).encode(), headers)
        return _decoded(data, _Tokens, "the token endpoint answers no id_token").id_token

    async def _current(self, most_ms: int) -> _Known:
        """The metadata and keys of the provider, at most `most_ms` old."""
        async with self._looking:
            now_ms, known = self._clock.monotonic_ms(), self._known
            if known is not None and now_ms - known.read_ms < most_ms:
                return known
            if self._failed is not None and now_ms - self._failed[1] < RETRY_MS:
                raise ProviderFailed(str(self._failed[0]))
            try:
                metadata = await self._described()
                keys = parse_keys("jwks_uri: its answer", await self._ask(metadata.jwks_uri))
            except (ProviderFailed, ConfigError) as error:
                failed = ProviderFailed(str(error))
                self._failed = failed, self._clock.monotonic_ms()
                raise failed from None
            self._known, self._failed = _Known(metadata, keys, now_ms), None
            return self._known

    async def _described(self) -> Metadata:
        issuer = self.config.issuer
        data = await self._ask(issuer.removesuffix("/") + WELL_KNOWN)
        found = _decoded(data, Metadata, "the provider's description is not as it should be")
        if found.issuer != issuer:
            raise ProviderFailed("the provider's description names another issuer")
        for url in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            if not is_safe_url(url):
                raise ProviderFailed("the provider names an endpoint that is not https://…")
        return found

    async def _ask(
        self, url: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        trusted = self.config.ssl_truststore_location or None
        try:
            async with self._asking, asyncio.timeout(ANSWER_S):
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads,
                    partial(ask, "OpenID Connect", url, data, headers, trusted, within_s=ANSWER_S),
                )
        except TimeoutError:
            raise ProviderFailed(f"the provider does not answer within {ANSWER_S:g} s") from None
        except ConfigError as error:
            raise ProviderFailed(str(error)) from None


def _decoded(data: bytes, wanted: type[T], refusal: str) -> T:
    try:
        return msgspec.json.decode(data, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProviderFailed(refusal) from None
