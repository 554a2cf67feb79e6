"""Settings of TLS and SASL."""

from dataclasses import dataclass

from penstock.config.setting import Update, setting
from penstock.config.value import ConfigType, Password

STORE_TYPES = ("JKS", "PKCS12", "PEM")
_REFERENCE = "Altered only to a variable of a config provider, such as `${file:/run/secrets:key}`."


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """TLS and SASL of listeners; `listener.name.<name>.` before a name is for one listener."""

    ssl_keystore_type: str = setting(
        "ssl.keystore.type",
        "JKS",
        "Of the broker's key. `PEM` is needed where key and certificates are in settings; a file "
        "is known by its bytes. JKS files are refused.",
        choices=STORE_TYPES,
        update=Update.PER_BROKER,
    )
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location",
        None,
        "File with the broker's key and certificates: PEM, or PKCS12 (read by the `openssl` "
        "command). A changed file is read again.",
        update=Update.PER_BROKER,
    )
    ssl_keystore_password: Password | None = setting(
        "ssl.keystore.password",
        None,
        f"Password of a PKCS12 file. {_REFERENCE}",
        kind=ConfigType.PASSWORD,
        update=Update.PER_BROKER,
    )
    ssl_key_password: Password | None = setting(
        "ssl.key.password",
        None,
        f"Password of an encrypted key in PEM. {_REFERENCE}",
        kind=ConfigType.PASSWORD,
        update=Update.PER_BROKER,
    )
    ssl_keystore_key: Password | None = setting(
        "ssl.keystore.key",
        None,
        "The broker's key as PEM text.",
        kind=ConfigType.PASSWORD,
    )
    ssl_keystore_certificate_chain: Password | None = setting(
        "ssl.keystore.certificate.chain",
        None,
        "The broker's certificates as PEM text, its own first.",
        kind=ConfigType.PASSWORD,
    )
    ssl_truststore_type: str = setting(
        "ssl.truststore.type",
        "JKS",
        "Of the authorities of clients, as `ssl.keystore.type`.",
        choices=STORE_TYPES,
        update=Update.PER_BROKER,
    )
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location",
        None,
        "File with the authorities that clients' certificates are checked against: PEM or PKCS12.",
        update=Update.PER_BROKER,
    )
    ssl_truststore_password: Password | None = setting(
        "ssl.truststore.password",
        None,
        f"Password of a PKCS12 file. {_REFERENCE}",
        kind=ConfigType.PASSWORD,
        update=Update.PER_BROKER,
    )
    ssl_truststore_certificates: Password | None = setting(
        "ssl.truststore.certificates",
        None,
        "Authorities as PEM text.",
        kind=ConfigType.PASSWORD,
    )
    ssl_allow_dn_changes: bool = setting(
        "ssl.allow.dn.changes",
        False,
        "Whether a changed certificate of the broker may have another subject.",
    )
    ssl_allow_san_changes: bool = setting(
        "ssl.allow.san.changes",
        False,
        "Whether a changed certificate of the broker may lack hosts of the old one.",
    )
    ssl_client_auth: str = setting(
        "ssl.client.auth",
        "none",
        "Whether clients show a certificate. On SASL_SSL listeners only with the prefix of the "
        "listener.",
        choices=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "Versions of TLS that clients may use.",
        choices=("TLSv1.2", "TLSv1.3"),
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        "ssl.cipher.suites",
        (),
        "Cipher suites that clients may use, by the names of Java and IANA, or OpenSSL's; "
        "empty: those of OpenSSL. Of TLS 1.3 all three are used, or none.",
    )
    ssl_protocol: str = setting(
        "ssl.protocol",
        "TLSv1.3",
        "Accepted, without effect: `ssl.enabled.protocols` says which versions are used.",
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Whether a broker that connects to another checks its name in the certificate: https, or "
        "empty for not.",
        choices=("https", ""),
    )
    ssl_principal_mapping_rules: str = setting(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "The user that a certificate's subject stands for: DEFAULT or "
        "RULE:pattern/replacement/[LU], separated by commas; the first that matches decides.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "Mechanisms of a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. GSSAPI "
        "(Kerberos) is refused.",
    )
    sasl_jaas_config: Password | None = setting(
        "sasl.jaas.config",
        None,
        "Users of a mechanism, as Java's login modules have them; only as "
        "`listener.name.<name>.<mechanism>.sasl.jaas.config`.",
        kind=ConfigType.PASSWORD,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "The public keys that tokens are checked against (JWKS): file:///…, https://… or http://…. "
        "Without it OAUTHBEARER does not start.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "How often keys are fetched from a URL. A file is read when it changes.",
        kind=ConfigType.LONG,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "First pause after keys could not be fetched; it doubles. At least a second passes.",
        kind=ConfigType.LONG,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "Longest pause after keys could not be fetched, and shortest between two fetches for "
        "tokens whose key is not known.",
        kind=ConfigType.LONG,
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "How far the clocks of issuer and broker may differ.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        "sasl.oauthbearer.expected.audience",
        (),
        "A token must be for one of these; empty: for anyone.",
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer",
        None,
        "Who must have issued a token; not set: anyone whose key is known.",
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", "scope", "Where a token has its scopes."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name", "sub", "Where a token has the user's name."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        "Where this broker gets the token by which it logs in to others: a file, or an endpoint "
        "that knows the clientId and clientSecret of the listener's `sasl.jaas.config`.",
    )
    sasl_mechanism_inter_broker_protocol: str = setting(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "The mechanism by which brokers log in to each other, with the username and password of "
        "the inter-broker listener's `sasl.jaas.config`.",
    )
    sasl_server_max_receive_size: int = setting(
        "sasl.server.max.receive.size",
        524_288,
        "Largest request of a client that has not logged in.",
    )
    connections_max_reauth_ms: int = setting(
        "connections.max.reauth.ms",
        0,
        "A client that logged in longer ago must log in again (KIP-368), or its connection is "
        "closed; 0: never.",
        kind=ConfigType.LONG,
    )
