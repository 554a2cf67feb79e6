"""Translates cipher suites from Java's, IANA's or OpenSSL's names for OpenSSL. Pure.

Python passes OpenSSL a list only for TLS 1.2. Suites of TLS 1.3 cannot be chosen one by one: either
all are offered, or that version is disabled.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from penstock.errors import ConfigError

TLS_1_3: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_KEYS: Final = ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA", "RSA")
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
TLS_1_2: Final = {
    f"TLS_{key}_WITH_{cipher}": "-".join([*([] if key == "RSA" else [key.replace("_", "-")]), name])
    for key in _KEYS
    for cipher, name in _CIPHERS.items()
}
"""OpenSSL's names. Some combinations do not exist: OpenSSL refuses those."""
_OPENSSL: Final = {**TLS_1_2, **{name: name for name in TLS_1_2.values()}}
VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class CipherSuites(NamedTuple):
    """OpenSSL's list for TLS 1.2, and the remaining TLS versions."""

    openssl: str
    versions: tuple[ssl.TLSVersion, ...]


def cipher_suites(
    name: str, suites: Sequence[str], versions: Sequence[ssl.TLSVersion]
) -> CipherSuites:
    """The effect of `suites` on a listener that speaks `versions`; `name` is the setting."""
    unknown = [each for each in suites if each not in TLS_1_3 and each not in _OPENSSL]
    if unknown:
        raise ConfigError(
            f"{name}: {unknown[0]} is not known; write the names that Java or OpenSSL has for "
            f"suites of TLS 1.2 and 1.3, such as {min(TLS_1_3)}, "
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or ECDHE-RSA-AES128-GCM-SHA256"
        )
    newer = TLS_1_3 & set(suites)
    older = [_OPENSSL[each] for each in suites if each in _OPENSSL]
    if newer and newer != TLS_1_3 and ssl.TLSVersion.TLSv1_3 in versions:
        raise ConfigError(
            f"{name} names some suites of TLS 1.3, and through Python OpenSSL offers all of them "
            f"or none: add {', '.join(sorted(TLS_1_3 - newer))}, or leave out TLSv1.3 "
            "(ssl.enabled.protocols) and its suites"
        )
    possible = {ssl.TLSVersion.TLSv1_3: bool(newer), ssl.TLSVersion.TLSv1_2: bool(older)}
    left = tuple(each for each in versions if possible[each])
    if not left:
        raise ConfigError(f"{name} names no suite of the versions in ssl.enabled.protocols")
    return CipherSuites(":".join(older), left)


def restrict(context: ssl.SSLContext, name: str, suites: Sequence[str]) -> None:
    """Restrict the context to these suites; empty: OpenSSL's own choice."""
    if not suites:
        return
    low, high = context.minimum_version, context.maximum_version
    versions = [each for each in VERSIONS.values() if _is_between(low, each, high)]
    chosen = cipher_suites(name, suites, versions)
    context.minimum_version, context.maximum_version = chosen.versions[0], chosen.versions[-1]
    for each in filter(None, chosen.openssl.split(":")):
        try:
            context.set_ciphers(each)
        except ssl.SSLError:
            java = next(java for java, openssl in TLS_1_2.items() if openssl == each)
            raise ConfigError(f"{name}: this OpenSSL does not have {java}") from None
    if chosen.openssl:
        context.set_ciphers(chosen.openssl)


def restrict_client(context: ssl.SSLContext, given: Mapping[str, str], prefix: str = "") -> None:
    """Apply a client's `ssl.enabled.protocols` and `ssl.cipher.suites`."""
    name = "ssl.enabled.protocols"
    versions = listed(given.get(name, "")) or list(VERSIONS)
    for each in versions:
        if each not in VERSIONS:
            raise ConfigError(f"{prefix}{name}: {each!r} is not one of {', '.join(VERSIONS)}")
    context.minimum_version = VERSIONS[min(versions)]
    context.maximum_version = VERSIONS[max(versions)]
    name = "ssl.cipher.suites"
    restrict(context, f"{prefix}{name}", listed(given.get(name, "")))


def listed(text: str) -> list[str]:
    """A list in one text: Java separates by commas, OpenSSL by colons."""
    return [each for each in map(str.strip, text.replace(":", ",").split(",")) if each]


def _is_between(low: ssl.TLSVersion, version: ssl.TLSVersion, high: ssl.TLSVersion) -> bool:
    is_low = low is ssl.TLSVersion.MINIMUM_SUPPORTED or low <= version
    return is_low and (high is ssl.TLSVersion.MAXIMUM_SUPPORTED or version <= high)
