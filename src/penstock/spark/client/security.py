"""Security of a job's connections, from `kafka.*` options: TLS with PEM files, and SASL.

Plain values, which Spark sends to executors; each connection makes its own TLS context.
"""

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.client import token
from penstock.client.cipher_suites import VERSIONS, restrict_client
from penstock.client.jaas import login_options, parse_jaas
from penstock.client.sasl import MECHANISMS, OAUTHBEARER, Login
from penstock.errors import ConfigError
from penstock.spark.options import SUPPORTED, NoEffect, Options, Unsupported, Use

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_STORES: Final = ("PEM", "JKS", "PKCS12")
_NO_PEM_SUFFIXES: Final = (".jks", ".p12", ".pfx", ".keystore", ".truststore")
_AS_PEM: Final = (
    "only PEM is read. Convert it (keytool -importkeystore ... -deststoretype PKCS12, then "
    "openssl pkcs12 -in store.p12 -nodes -out store.pem) and set {kind}.type to PEM"
)
_NO_CLASSES: Final = Unsupported("there is no Java class to load")
_NO_KERBEROS: Final = Unsupported(f"use kafka.sasl.mechanism {', '.join(MECHANISMS)}")
_JVM: Final = NoEffect("it belongs to the JVM's TLS")

SECURITY: Final[dict[str, Use]] = {
    "security.protocol": SUPPORTED,
    "security.providers": _JVM,
    "sasl.mechanism": SUPPORTED,
    "sasl.jaas.config": SUPPORTED,
    "sasl.username": SUPPORTED,
    "sasl.password": SUPPORTED,
    "sasl.client.callback.handler.class": _NO_CLASSES,
    "sasl.login.callback.handler.class": NoEffect(f"kafka.{token.URL} says where tokens are"),
    "sasl.login.class": _NO_CLASSES,
    "sasl.kerberos.service.name": _NO_KERBEROS,
    "sasl.kerberos.kinit.cmd": _NO_KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _NO_KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _NO_KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _NO_KERBEROS,
    **dict.fromkeys(token.SETTINGS, SUPPORTED),
    "sasl.oauthbearer.jwks.endpoint.url": NoEffect("brokers check tokens, not clients"),
    "ssl.truststore.type": SUPPORTED,
    "ssl.truststore.location": SUPPORTED,
    "ssl.truststore.certificates": SUPPORTED,
    "ssl.truststore.password": NoEffect("certificates in PEM have no password"),
    "ssl.keystore.type": SUPPORTED,
    "ssl.keystore.location": SUPPORTED,
    "ssl.keystore.key": SUPPORTED,
    "ssl.keystore.certificate.chain": SUPPORTED,
    "ssl.keystore.password": NoEffect("PEM is protected by kafka.ssl.key.password alone"),
    "ssl.key.password": SUPPORTED,
    "ssl.endpoint.identification.algorithm": SUPPORTED,
    "ssl.protocol": SUPPORTED,
    "ssl.enabled.protocols": SUPPORTED,
    "ssl.cipher.suites": SUPPORTED,
    "ssl.engine.factory.class": Unsupported(
        "there is no Java class to load; use kafka.ssl.* in PEM"
    ),
    "ssl.provider": _JVM,
    "ssl.keymanager.algorithm": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
    "ssl.secure.random.implementation": _JVM,
}
"""Options of the Kafka client by name, without the prefix `kafka.`."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Trusted certificates and our own, as paths or PEM text.

    Without trusted ones the system's apply; without our own none is sent.
    """

    trusted_path: str | None = None
    trusted_pem: str | None = None
    own_path: str | None = None
    own_pem: str | None = field(default=None, repr=False)
    """Key and certificate chain, one after the other."""
    key_password: str | None = field(default=None, repr=False)
    check_host: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)
    """`ssl.enabled.protocols` and `ssl.cipher.suites`, if given."""

    def context(self) -> ssl.SSLContext:
        """The TLS context; files are read on the machine that connects."""
        context = ssl.create_default_context()
        context.check_hostname = self.check_host
        try:
            if self.trusted_path or self.trusted_pem:
                context = self._trusting_only_given(context)
            if self.own_path or self.own_pem:
                self._show_own(context)
            restrict_client(context, self.versions, "option kafka.")
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ConfigError(f"kafka.ssl.*: {_cause(error, self)}") from None
        return context

    def _trusting_only_given(self, default: ssl.SSLContext) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = default.check_hostname
        context.load_verify_locations(cafile=self.trusted_path, cadata=self.trusted_pem)
        return context

    def _show_own(self, context: ssl.SSLContext) -> None:
        if self.own_path:
            context.load_cert_chain(self.own_path, password=self.key_password or "")
            return
        # Python's ssl reads keys only from files: use a private one briefly.
        handle, name = tempfile.mkstemp(suffix=".pem")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(self.own_pem or "")
            context.load_cert_chain(name, password=self.key_password or "")
        finally:
            Path(name).unlink()


@dataclass(frozen=True, slots=True)
class Security:
    """Steps on a connection before the first request; None: the step is left out."""

    tls: Tls | None = None
    login: Login | None = None


def read_security(options: Options) -> Security:
    """The security that the `kafka.` options describe."""
    protocol = options.one_of("kafka.security.protocol", _PROTOCOLS, "PLAINTEXT")
    return Security(
        _tls(options) if protocol.endswith("SSL") else None,
        _login(options) if protocol.startswith("SASL") else None,
    )


def _login(options: Options) -> Login:
    mechanism = options.text("kafka.sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        offered = ", ".join(MECHANISMS)
        raise ConfigError(
            f"option kafka.sasl.mechanism: {mechanism} is not supported; use one of {offered}"
        )
    if mechanism == OAUTHBEARER:
        return _token_login(options)
    if "kafka.sasl.jaas.config" in options:
        return parse_jaas(options.text("kafka.sasl.jaas.config"), mechanism, "kafka.")
    username = options.required("kafka.sasl.username")
    return Login(mechanism, username, options.required("kafka.sasl.password"))


def _token_login(options: Options) -> Login:
    given = {name: options.text(f"kafka.{name}") for name in token.SETTINGS}
    text = options.optional("kafka.sasl.jaas.config")
    module = {} if text is None else login_options(text, OAUTHBEARER, "kafka.")
    trusted = options.optional("kafka.ssl.truststore.location")
    return Login(OAUTHBEARER, token=token.token_source(given, module, trusted, "kafka."))


def _tls(options: Options) -> Tls:
    for kind in ("kafka.ssl.truststore", "kafka.ssl.keystore"):
        _refuse_other_than_pem(options, kind)
    algorithm = options.text("kafka.ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in {"", "https"}:
        raise ConfigError(
            f"option kafka.ssl.endpoint.identification.algorithm: {algorithm!r} is neither "
            "https nor empty"
        )
    key, chain = (
        options.optional(f"kafka.ssl.keystore.{part}") for part in ("key", "certificate.chain")
    )
    if (key is None) != (chain is None):
        raise ConfigError(
            "options kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain go together"
        )
    return Tls(
        trusted_path=options.optional("kafka.ssl.truststore.location"),
        trusted_pem=options.optional("kafka.ssl.truststore.certificates"),
        own_path=options.optional("kafka.ssl.keystore.location"),
        own_pem=None if key is None else f"{key}\n{chain}\n",
        key_password=options.optional("kafka.ssl.key.password"),
        check_host=algorithm == "https",
        versions=_versions(options),
    )


def _refuse_other_than_pem(options: Options, kind: str) -> None:
    type_, location = f"{kind}.type", options.text(f"{kind}.location").lower()
    given = options.one_of(type_, _STORES, "")
    if given not in {"", "PEM"}:
        raise ConfigError(f"option {type_} is {given}: {_AS_PEM.format(kind=kind)}")
    if not given and location.endswith(_NO_PEM_SUFFIXES):
        raise ConfigError(f"option {kind}.location names a Java store: {_AS_PEM.format(kind=kind)}")


def _versions(options: Options) -> dict[str, str]:
    options.one_of("kafka.ssl.protocol", ("TLS", *VERSIONS), "TLS")
    names = ("ssl.enabled.protocols", "ssl.cipher.suites")
    given = {name: text for name in names if (text := options.text(f"kafka.{name}"))}
    restrict_client(ssl.create_default_context(), given, "option kafka.")  # checks at the driver
    return given


def _cause(error: Exception, tls: Tls) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        paths = " or ".join(path for path in (tls.trusted_path, tls.own_path) if path)
        return f"cannot read {error.filename or paths}: {error.strerror}"
    if tls.own_path and b"PRIVATE KEY-----" not in Path(tls.own_path).read_bytes():
        return f"kafka.ssl.keystore.location: {tls.own_path} holds no private key in PEM"
    return f"not usable as PEM: {error}"
