"""TLS and login of a client's connections, from Kafka's client settings.

Names are Java's; librdkafka's names (`ssl.ca.location`, `sasl.username`, …) mean the same.
"""

import os
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.client import token
from penstock.client.cipher_suites import restrict_client
from penstock.client.jaas import login_options, parse_jaas
from penstock.client.sasl import MECHANISMS, OAUTHBEARER, Login
from penstock.errors import ConfigError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SYNONYMS: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    **token.SYNONYMS,
}
_KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.method",
        *token.SETTINGS,
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.location",
        "ssl.certificate.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "ssl.cipher.suites",
    }
)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """Steps on a connection before the first request; None: the step is left out."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


NO_SECURITY: Final = ClientSecurity()


def no_security() -> ClientSecurity:
    return NO_SECURITY


def client_security(settings: Mapping[str, str]) -> ClientSecurity:
    """Read settings by name. Refuses security settings that would have no effect."""
    given = {_SYNONYMS.get(name, name): text.strip() for name, text in settings.items()}
    for name in given:
        if name.startswith(("ssl.", "sasl.", "security.")) and name not in _KNOWN:
            raise ConfigError(f"{name} is not supported; known are {', '.join(sorted(_KNOWN))}")
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"security.protocol is {protocol!r}, must be one of {', '.join(PROTOCOLS)}"
        )
    if protocol == "PLAINTEXT" and any(name.startswith(("ssl.", "sasl.")) for name in given):
        raise ConfigError("ssl.* and sasl.* have no effect while security.protocol is PLAINTEXT")
    return ClientSecurity(
        _context(given) if protocol.endswith("SSL") else None,
        _login(given) if protocol.startswith("SASL") else None,
    )


def _login(given: Mapping[str, str]) -> Login:
    mechanism = given.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        offered = ", ".join(MECHANISMS)
        raise ConfigError(f"sasl.mechanism is {mechanism!r}, must be one of {offered}")
    if mechanism == OAUTHBEARER:
        return _token_login(given)
    if "sasl.jaas.config" in given:
        return parse_jaas(given["sasl.jaas.config"], mechanism)
    for name in ("sasl.username", "sasl.password"):
        if name not in given:
            raise ConfigError(f"there is no {name}, nor a sasl.jaas.config")
    return Login(mechanism, given["sasl.username"], given["sasl.password"])


def _token_login(given: Mapping[str, str]) -> Login:
    handler = given.get("sasl.login.callback.handler.class", "")
    if handler and not handler.endswith(".OAuthBearerLoginCallbackHandler"):
        raise ConfigError(
            "sasl.login.callback.handler.class names a class of Java, which cannot be loaded; "
            f"{token.URL} says where tokens are"
        )
    if given.get("sasl.oauthbearer.method", "oidc").lower() != "oidc":
        raise ConfigError("sasl.oauthbearer.method must be oidc: unsecured tokens are not made")
    text = given.get("sasl.jaas.config")
    options = {} if text is None else login_options(text, OAUTHBEARER)
    trusted = given.get("ssl.truststore.location")
    return Login(OAUTHBEARER, token=token.token_source(given, options, trusted))


def _context(given: Mapping[str, str]) -> ssl.SSLContext:
    for kind in ("ssl.truststore.type", "ssl.keystore.type"):
        if given.get(kind, "PEM").upper() != "PEM":
            raise ConfigError(f"{kind} is {given[kind]}: only PEM is read; convert it by openssl")
    context = ssl.create_default_context()
    trusted = given.get("ssl.truststore.location"), given.get("ssl.truststore.certificates")
    if any(trusted):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts only these, not the system's
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cafile=trusted[0], cadata=trusted[1])
        except (OSError, ValueError) as error:
            raise ConfigError(f"ssl.truststore: {_reason(error, trusted[0])}") from None
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in {"", "none", "https"}:
        raise ConfigError(f"ssl.endpoint.identification.algorithm is {algorithm!r}, must be https")
    context.check_hostname = algorithm == "https"
    restrict_client(context, given)
    _show_own(context, given)
    return context


def _show_own(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    password = given.get("ssl.key.password", "")  # never None: OpenSSL would prompt on a terminal
    path, key_path = given.get("ssl.keystore.location"), given.get("ssl.key.location")
    if key_path is not None:
        path = given.get("ssl.certificate.location")
    key, chain = given.get("ssl.keystore.key"), given.get("ssl.keystore.certificate.chain")
    try:
        if path is not None:
            context.load_cert_chain(path, key_path, password)
        elif key is not None and chain is not None:
            _load_text(context, f"{key}\n{chain}\n", password)
        elif key_path or key or chain:
            raise ConfigError("a key and a certificate go together in ssl.keystore or ssl.key")
    except (OSError, ValueError) as error:
        keys = key_path or path
        if isinstance(error, ssl.SSLError) and keys and not _has_key(keys):
            setting = "ssl.key.location" if key_path else "ssl.keystore.location"
            raise ConfigError(f"{setting}: {keys} holds no private key in PEM") from None
        raise ConfigError(f"ssl.keystore: {_reason(error, path)}") from None


def _has_key(path: str) -> bool:
    return b"PRIVATE KEY-----" in Path(path).read_bytes()


def _load_text(context: ssl.SSLContext, text: str, password: str) -> None:
    """Python's ssl reads keys only from files: use a private one briefly."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        context.load_cert_chain(name, password=password)
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _reason(error: Exception, path: str | None) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{path or 'the text'} is not usable as PEM, or the password is wrong"
    if isinstance(error, OSError):
        return f"cannot read {path}: {error.strerror}"
    return str(error)
