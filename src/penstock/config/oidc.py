"""Settings of the console's login by OpenID Connect. Pure."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from penstock.config.properties import properties
from penstock.config.setting import SettingError, load, setting, settings
from penstock.config.value import ConfigType, Password
from penstock.errors import ConfigError

CALLBACK: Final = "/login/oidc/callback"
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """The settings of `penstock console --oidc FILE`."""

    issuer: str = setting(
        "issuer",
        "",
        "The provider's issuer; ISSUER/.well-known/openid-configuration describes it. https, or "
        "http on loopback.",
    )
    client_id: str = setting("client.id", "", "The console's id at the provider.")
    client_secret: Password | None = setting(
        "client.secret",
        None,
        "The console's secret at the provider; not set: a public client, which PKCE protects.",
        kind=ConfigType.PASSWORD,
    )
    redirect_uri: str = setting(
        "redirect.uri",
        "",
        f"The console's address with {CALLBACK}, as the provider knows it.",
    )
    claim: str = setting(
        "claim",
        "sub",
        "The claim of the ID token that is the NAME in the users file. email counts only if "
        "email_verified is true.",
    )
    ssl_truststore_location: str = setting(
        "ssl.truststore.location",
        "",
        "A PEM file with the authorities of the provider's certificate; empty: the system's.",
    )


def parse_oidc(text: str, source: str) -> OidcConfig:
    """Parse a file in properties syntax; errors name `source`."""
    known, texts = settings(OidcConfig), dict[str, str]()
    for name, value, line in properties(text):
        at = f"{source}, line {line}"
        if name not in known:
            raise ConfigError(f"{at}: {name} is unknown; there are {', '.join(known)}")
        if name in texts:
            raise ConfigError(f"{at}: {name} is there twice")
        texts[name] = value
    try:
        found = load(OidcConfig, texts)
    except SettingError as error:
        raise error.at(source) from None
    for name in ("issuer", "client.id", "redirect.uri", "claim"):
        if not texts.get(name, known[name].default):
            raise ConfigError(f"{source}: {name} is missing")
    for name, url in (("issuer", found.issuer), ("redirect.uri", found.redirect_uri)):
        if not is_safe_url(url):
            raise ConfigError(f"{source}: {name} must be https://…, or http://… on loopback")
    if "?" in found.issuer or not found.redirect_uri.endswith(CALLBACK):
        raise ConfigError(f"{source}: issuer has no query, and redirect.uri ends in {CALLBACK}")
    return found


def is_https(url: str) -> bool:
    return urlsplit(url).scheme == "https"


def is_safe_url(url: str) -> bool:
    """Whether data sent to this URL is safe from eavesdropping: https, or http on loopback."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return False
    if not url.isascii() or not url.isprintable() or " " in url or parts.fragment or "@" in host:
        return False
    if parts.username is not None or parts.password is not None:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    )
