"""The TLS of one listener: the broker's certificate, and whether clients must show theirs."""

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from penstock.broker.key_store import certificates, load_own, load_trusted, pem, read_store
from penstock.client.cipher_suites import VERSIONS, restrict
from penstock.config.listener import SecurityProtocol
from penstock.config.listener_security import ListenerSecurity, is_alterable, is_secret
from penstock.config.providers import Provided, check_reference
from penstock.config.security import SecurityConfig
from penstock.config.value import Password
from penstock.errors import ConfigError, ProtocolError
from penstock.security.certificate import Certificate, parse_certificate
from penstock.security.principal import ANONYMOUS, Principal, user
from penstock.security.principal_mapping import mapped, parse_rules

logger = logging.getLogger(__name__)

_ASKED: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

Stamp = tuple[object, ...]
"""For each file: its path, and its mtime, size and inode, or None if it is missing. Then the
altered settings.
"""


class Loaded(msgspec.Struct, frozen=True):
    """TLS contexts and certificate, as files and settings had them at one moment."""

    context: ssl.SSLContext
    own: Certificate
    to_peers: ssl.SSLContext | None
    """For connections to other brokers; None if there is no truststore."""


class TlsListener:
    """The current TLS context of a listener. Open connections keep the context they began with."""

    def __init__(
        self,
        security: ListenerSecurity,
        now_ms: int,
        provided: Provided | None = None,
        altered: Mapping[str, str] | None = None,
    ) -> None:
        self._static, self._provided = security, provided
        self.alter(altered or {})
        # As in Kafka: a SASL listener asks for client certificates only if its own settings say so.
        sasl = security.protocol is SecurityProtocol.SASL_SSL
        asks = not sasl or security.has_own("ssl.client.auth")
        self._client_auth = self._config.ssl_client_auth if asks else "none"
        self._rules = parse_rules(self._config.ssl_principal_mapping_rules)
        self.stamp = self.current_stamp()
        self._loaded = self.load(now_ms)

    @property
    def context(self) -> ssl.SSLContext:
        return self._loaded.context

    @property
    def to_peers(self) -> ssl.SSLContext | None:
        return self._loaded.to_peers

    @property
    def own(self) -> Certificate:
        return self._loaded.own

    def altered(self, texts: Mapping[str, str], now_ms: int) -> "TlsListener":
        """A copy of this listener with these settings altered. Blocks like `load`."""
        return TlsListener(self._static, now_ms, self._provided, texts)

    def alter(self, texts: Mapping[str, str]) -> None:
        """Apply altered settings; the next `load` reads the files that they name."""
        self._altered = {name: text for name, text in texts.items() if is_alterable(name)}
        self._security = self._with(self._altered)
        self._config = self._security.config()

    def _with(self, altered: Mapping[str, str]) -> ListenerSecurity:
        static = self._static
        return ListenerSecurity(static.listener, static.protocol, {**static.texts, **altered})

    def _with_passwords(self) -> SecurityConfig:
        """The settings with passwords filled in: altered passwords are stored as references,
        resolved now.
        """
        texts = {
            name: self._password(name, text) if is_secret(name) else text
            for name, text in self._altered.items()
        }
        return self._with(texts).config()

    def _password(self, name: str, text: str) -> str:
        check_reference(name, text)
        found = text if self._provided is None else self._provided(name, text)
        if found == text:
            raise ConfigError(f"{name} is not a variable of the broker's config.providers")
        return found

    def principal(self, certificate: bytes | None) -> Principal:
        """The user that a client's certificate stands for."""
        if certificate is None:
            return ANONYMOUS
        subject = parse_certificate(certificate).subject
        name = mapped(self._rules, subject)
        if name is None:
            raise ProtocolError(f"no rule of ssl.principal.mapping.rules matches {subject!r}")
        return user(name)

    def current_stamp(self) -> Stamp:
        config = self._config
        return tuple(
            (path, _stamp(path))
            for path in (config.ssl_keystore_location, config.ssl_truststore_location)
            if path is not None
        ) + tuple(self._altered.items())

    def load(self, now_ms: int) -> Loaded:
        """Read files and settings. Blocks; PKCS12 takes some milliseconds."""
        config, name = self._with_passwords(), self._security.name
        own_name, own = self._own(config)
        context = self._context(ssl.PROTOCOL_TLS_SERVER, config, own_name, own)
        certificate = parse_certificate(certificates(own)[0])
        if certificate.expires_s * 1000 < now_ms:
            raise ConfigError(f"{own_name}: the broker's certificate has expired")
        trusted = self._trusted(config)
        if trusted is not None:
            load_trusted(context, *trusted)
        elif self._client_auth != "none":
            raise ConfigError(
                f"{name('ssl.client.auth')} is {self._client_auth}, but neither "
                "ssl.truststore.location nor ssl.truststore.certificates says which clients to "
                "trust"
            )
        context.verify_mode = _ASKED[self._client_auth]
        to_peers = None
        if trusted is not None:
            to_peers = self._context(ssl.PROTOCOL_TLS_CLIENT, config, own_name, own)
            algorithm = config.ssl_endpoint_identification_algorithm.lower()
            to_peers.check_hostname = algorithm == "https"
            load_trusted(to_peers, *trusted)
        return Loaded(context, certificate, to_peers)

    def _context(
        self, side: int, config: SecurityConfig, own_name: str, own: str
    ) -> ssl.SSLContext:
        name = self._security.name
        context = ssl.SSLContext(side)
        versions = sorted(VERSIONS[each] for each in config.ssl_enabled_protocols)
        if not versions:
            raise ConfigError(f"{name('ssl.enabled.protocols')} names no version of TLS")
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        restrict(context, name("ssl.cipher.suites"), config.ssl_cipher_suites)
        context.options |= ssl.OP_NO_RENEGOTIATION
        # As in Java: every certificate in the truststore is trusted, not only roots.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        load_own(context, own_name, own, name("ssl.key.password"), config.ssl_key_password)
        return context

    def replace(self, new: Loaded) -> None:
        """Use `new` for connections from now on, if it belongs to the same broker (KIP-226)."""
        self.check_same_broker(new.own)
        self._loaded = new

    def check_same_broker(self, new: Certificate) -> None:
        old, config = self._loaded.own, self._config
        if new.subject != old.subject and not config.ssl_allow_dn_changes:
            raise ConfigError(f"the new certificate is of {new.subject!r}, not {old.subject!r}")
        has_all = old.alternative_names <= new.alternative_names
        if not has_all and not config.ssl_allow_san_changes:
            raise ConfigError("the new certificate lacks hosts of the old one")

    @property
    def listener(self) -> str:
        return self._security.listener

    def _own(self, config: SecurityConfig) -> tuple[str, str]:
        name = self._security.name
        key, chain = config.ssl_keystore_key, config.ssl_keystore_certificate_chain
        location = config.ssl_keystore_location
        if key is not None or chain is not None:
            if key is None or chain is None:
                raise ConfigError(
                    f"listener {self.listener}: ssl.keystore.key and "
                    "ssl.keystore.certificate.chain go together"
                )
            if location is not None:
                raise ConfigError(
                    f"{name('ssl.keystore.location')} and {name('ssl.keystore.key')} cannot both "
                    "be set"
                )
            self._check_type("ssl.keystore", config.ssl_keystore_type, "ssl.keystore.key")
            named = name("ssl.keystore.key")
            chained = name("ssl.keystore.certificate.chain")
            return named, pem(named, key.value) + pem(chained, chain.value)
        if location is None:
            raise ConfigError(
                f"listener {self.listener} speaks {self._security.protocol}, but there is no "
                "ssl.keystore.location with the broker's key and certificate"
            )
        named = name("ssl.keystore.location")
        text = self._from_file(named, location, "ssl.keystore", config.ssl_keystore_password)
        return f"{named}: {location}", text

    def _trusted(self, config: SecurityConfig) -> tuple[str, str] | None:
        name = self._security.name
        text, location = config.ssl_truststore_certificates, config.ssl_truststore_location
        if text is not None:
            if location is not None:
                raise ConfigError(
                    f"{name('ssl.truststore.location')} and "
                    f"{name('ssl.truststore.certificates')} cannot both be set"
                )
            self._check_type("ssl.truststore", config.ssl_truststore_type, "…certificates")
            named = name("ssl.truststore.certificates")
            return named, pem(named, text.value)
        if location is None:
            return None
        named, password = name("ssl.truststore.location"), config.ssl_truststore_password
        return named, self._from_file(named, location, "ssl.truststore", password)

    def _from_file(self, name: str, path: str, kind: str, password: Password | None) -> str:
        return read_store(name, path, self._security.name(f"{kind}.password"), password)

    def _check_type(self, kind: str, given: str, setting: str) -> None:
        if given != "PEM":
            raise ConfigError(
                f"{self._security.name(f'{kind}.type')} is {given}, must be PEM for "
                f"{setting.replace('…', f'{kind}.')}"
            )


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):  # ValueError: a path with a null byte
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
