"""TLS of a listener: sources of keys, refusals at the start, and required client certificates."""

import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from penstock.broker.key_store import pem
from penstock.broker.net.protection import peer_security, protections
from penstock.broker.net.tls import TlsListener
from penstock.client.sasl import Login
from penstock.clock import SystemClock
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.config.listener_security import ListenerSecurity
from penstock.errors import ConfigError, ProtocolError
from penstock.security.principal import ANONYMOUS, user
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import (
    KeyFiles,
    certified,
    encrypted,
    pkcs12,
    served_certificate,
)

CANARY = "canary-9f31"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return certified(tmp_path_factory.mktemp("keys"), "broker")


def tls(**settings: str) -> TlsListener:
    texts = {name.replace("_", "."): text for name, text in settings.items()}
    security = ListenerSecurity("OUT", SecurityProtocol.SSL, texts)
    return TlsListener(security, SystemClock().now_ms())


def test_keys_come_from_pem_files_pem_text_and_pkcs12(keys: KeyFiles) -> None:
    one_line = " ".join(keys.key.read_text().split("\n"))
    for given in (
        {"ssl_keystore_location": str(keys.store)},
        {
            "ssl_keystore_type": "PEM",
            "ssl_keystore_key": one_line,
            "ssl_keystore_certificate_chain": keys.certificate.read_text(),
        },
        {
            "ssl_keystore_location": str(pkcs12(keys, CANARY)),
            "ssl_keystore_password": CANARY,
            "ssl_truststore_location": str(pkcs12(keys, CANARY)),
            "ssl_truststore_password": CANARY,
            "ssl_client_auth": "required",
        },
        {"ssl_keystore_location": str(encrypted(keys, CANARY)), "ssl_key_password": CANARY},
        {
            "ssl_keystore_location": str(keys.store),
            "ssl_truststore_type": "PEM",
            "ssl_truststore_certificates": keys.certificate.read_text(),
            "ssl_client_auth": "requested",
        },
    ):
        assert tls(**given).context.cert_store_stats() is not None


def test_a_listeners_own_settings_win(keys: KeyFiles, tmp_path: Path) -> None:
    other = certified(tmp_path, "other")
    texts = {
        "ssl.keystore.location": str(keys.store),
        "ssl.client.auth": "required",
        "listener.name.out.ssl.keystore.location": str(other.store),
        "listener.name.out.ssl.client.auth": "none",
    }
    security = ListenerSecurity("OUT", SecurityProtocol.SSL, texts)
    assert security.config().ssl_keystore_location == str(other.store)
    assert security.name("ssl.keystore.location") == "listener.name.out.ssl.keystore.location"
    assert TlsListener(security, 0).context.verify_mode == ssl.CERT_NONE


def test_a_sasl_listener_requires_certificates_only_by_its_own_setting(keys: KeyFiles) -> None:
    texts = {
        "ssl.keystore.location": str(keys.store),
        "ssl.truststore.location": str(keys.certificate),
        "ssl.client.auth": "required",
    }
    sasl = SecurityProtocol.SASL_SSL
    assert TlsListener(ListenerSecurity("A", sasl, texts), 0).context.verify_mode == 0
    texts["listener.name.a.ssl.client.auth"] = "required"
    assert TlsListener(ListenerSecurity("A", sasl, texts), 0).context.verify_mode == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "listener OUT speaks SSL, but there is no ssl.keystore.location"),
        ({"ssl_keystore_location": "MISSING"}, "ssl.keystore.location: cannot read MISSING: No"),
        ({"ssl_keystore_location": "JKS"}, "convert it: keytool -importkeystore -srckeystore"),
        ({"ssl_keystore_location": "JUNK"}, "is neither PEM nor PKCS12"),
        ({"ssl_keystore_location": "CERTIFICATE"}, "broker.cert.pem holds no private key: put"),
        ({"ssl_keystore_location": "KEY"}, "broker.key.pem holds no certificate: put"),
        (
            {"ssl_keystore_location": "KEYLESS", "ssl_keystore_password": CANARY},
            "broker.store.p12 holds no private key: put",
        ),
        (
            {"ssl_keystore_location": "PKCS12", "ssl_keystore_password": "no"},
            "ssl.keystore.password is not the password of",
        ),
        ({"ssl_keystore_location": "PKCS12"}, "ssl.keystore.password is not the password of"),
        (
            {"ssl_keystore_location": "ENCRYPTED"},
            "ssl.key.password does not open the key of ssl.keystore.location",
        ),
        (
            {"ssl_keystore_location": "ENCRYPTED", "ssl_key_password": "no"},
            "ssl.key.password does not open the key of ssl.keystore.location",
        ),
        ({"ssl_keystore_location": "EXPIRED"}, "the broker's certificate has expired"),
        (
            {"ssl_keystore_location": "STORE", "ssl_client_auth": "required"},
            "ssl.client.auth is required, but neither ssl.truststore.location",
        ),
        (
            {"ssl_keystore_location": "STORE", "ssl_truststore_location": "KEY"},
            "ssl.truststore.location holds no certificate",
        ),
        ({"ssl_keystore_key": "PEM"}, "ssl.keystore.certificate.chain go together"),
        (
            {"ssl_keystore_key": "PEM", "ssl_keystore_certificate_chain": "PEM"},
            "ssl.keystore.type is JKS, must be PEM for ssl.keystore.key",
        ),
        (
            {
                "ssl_keystore_type": "PEM",
                "ssl_keystore_key": CANARY,
                "ssl_keystore_certificate_chain": "PEM",
            },
            "ssl.keystore.key holds nothing in PEM",
        ),
        (
            {"ssl_keystore_location": "STORE", "ssl_enabled_protocols": ""},
            "ssl.enabled.protocols names no version of TLS",
        ),
        (
            {"ssl_keystore_location": "STORE", "ssl_cipher_suites": "TLS_NULL"},
            "ssl.cipher.suites: TLS_NULL is not known",
        ),
        (
            {"ssl_keystore_location": "STORE", "ssl_principal_mapping_rules": "RULE:x"},
            "ssl.principal.mapping.rules: 'RULE:x' must be DEFAULT",
        ),
    ],
)
def test_unusable_keys_are_reported_in_one_sentence_without_secrets(
    keys: KeyFiles, tmp_path: Path, settings: dict[str, str], says: str
) -> None:
    (tmp_path / "jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    (tmp_path / "junk").write_bytes(b"nothing")
    files = {
        "JKS": tmp_path / "jks",
        "JUNK": tmp_path / "junk",
        "STORE": keys.store,
        "KEY": keys.key,
        "CERTIFICATE": keys.certificate,
    }
    if "PKCS12" in settings.values():
        files["PKCS12"] = pkcs12(keys, CANARY)
    if "KEYLESS" in settings.values():
        files["KEYLESS"] = pkcs12(keys, CANARY, with_key=False)
    if "ENCRYPTED" in settings.values():
        files["ENCRYPTED"] = encrypted(keys, CANARY)
    if "EXPIRED" in settings.values():
        files["EXPIRED"] = keys.store
    given = {name: str(files.get(text, text)) for name, text in settings.items()}
    late_ms = 3 * 86_400_000 if "EXPIRED" in settings.values() else 0
    texts = {name.replace("_", "."): text for name, text in given.items()}
    with pytest.raises(ConfigError) as caught:
        TlsListener(
            ListenerSecurity("OUT", SecurityProtocol.SSL, texts), SystemClock().now_ms() + late_ms
        )
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_login_without_listener_or_mechanism_is_refused() -> None:
    for name in ("sasl.jaas.config", "listener.name.a.sasl.jaas.config"):
        with pytest.raises(ConfigError, match=f"{name}: logins belong to a listener") as caught:
            protections((), {name: CANARY}, SystemClock(), Random(1))
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({}, "sasl.enabled.mechanisms has GSSAPI, but Kerberos is not supported"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "no sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.enabled.mechanisms": "NTLM"}, "has NTLM, but there is no such mechanism"),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "listener.name.a.plain.sasl.jaas.config names no"),
        (
            {"listener.name.a.sasl.enabled.mechanisms": "GSSAPI"},
            "listener.name.a.sasl.enabled.mechanisms has GSSAPI",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.a.plain.sasl.jaas.config": f'x required user_a="{CANARY}";',
            },
            "listener.name.a.plain.sasl.jaas.config must begin with",
        ),
    ],
)
def test_a_sasl_listener_without_usable_mechanisms_is_refused(
    texts: dict[str, str], says: str
) -> None:
    endpoints = [Endpoint("A", SecurityProtocol.SASL_PLAINTEXT, "", 0)]
    with pytest.raises(ConfigError) as caught:
        protections(endpoints, texts, SystemClock(), Random(1))
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)


def test_the_principal_is_taken_from_the_certificate(keys: KeyFiles) -> None:
    der = ssl.PEM_cert_to_DER_cert(keys.certificate.read_text())
    listener = tls(ssl_keystore_location=str(keys.store))
    assert listener.principal(None) == ANONYMOUS
    assert listener.principal(der) == user("O=Example,CN=127.0.0.1")
    rules = {"ssl_principal_mapping_rules": "RULE:^.*CN=(.*)$/$1/"}
    assert tls(ssl_keystore_location=str(keys.store), **rules).principal(der) == user("127.0.0.1")
    rules = {"ssl_principal_mapping_rules": "RULE:^OU=(.*)$/$1/"}
    with pytest.raises(ProtocolError, match="no rule"):
        tls(ssl_keystore_location=str(keys.store), **rules).principal(der)


def test_pem_in_one_line_gets_its_line_breaks(keys: KeyFiles) -> None:
    text = keys.certificate.read_text()
    assert pem("x", " ".join(text.split("\n"))) == text
    assert pem("x", "text before\n" + text + "text behind") == text


def test_changed_certificates_are_used_without_a_restart(tmp_path: Path) -> None:
    first, second = certified(tmp_path, "first"), certified(tmp_path, "second")
    store = tmp_path / "store.pem"
    store.write_text(first.pem)
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(store),
    }
    with EmbeddedBroker(settings=settings) as broker:
        served_certificate(broker.bootstrap, first)
        store.write_text(second.pem)
        deadline = time.monotonic() + 10
        while True:
            try:
                served_certificate(broker.bootstrap, second)
                break
            except ssl.SSLCertVerificationError:
                assert time.monotonic() < deadline, "the new certificate is not used"
                time.sleep(0.1)


def test_a_certificate_is_replaced_only_by_one_of_the_same_broker(tmp_path: Path) -> None:
    first, other = certified(tmp_path, "first"), certified(tmp_path, "other", "/CN=somebody")
    store = tmp_path / "store.pem"
    store.write_text(first.pem)
    listener = tls(ssl_keystore_location=str(store))
    old = listener.context
    store.write_text(other.pem)
    with pytest.raises(ConfigError, match="the new certificate is of 'CN=somebody'"):
        listener.replace(listener.load(0))
    assert listener.context is old


def test_a_certificate_of_another_subject_is_used_if_allowed(tmp_path: Path) -> None:
    first, other = certified(tmp_path, "first"), certified(tmp_path, "other", "/CN=somebody")
    store = tmp_path / "store.pem"
    store.write_text(first.pem)
    listener = tls(ssl_keystore_location=str(store), ssl_allow_dn_changes="true")
    old = listener.context
    store.write_text(other.pem)
    listener.replace(listener.load(0))
    assert listener.context is not old


def test_a_client_that_does_not_speak_tls_is_disconnected_and_others_are_served(
    keys: KeyFiles,
) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(keys.store),
        "connection.failed.authentication.delay.ms": "50",
    }
    with EmbeddedBroker(settings=settings) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x10" + bytes(16)):
            with socket.create_connection((host, int(port)), timeout=10) as sock:
                sock.sendall(data)
                with suppress(ConnectionResetError):
                    while sock.recv(100):  # perhaps an alert, then the end of the stream
                        pass
        served_certificate(broker.bootstrap, keys)


@pytest.mark.parametrize(
    "name",
    [None, "other.example", "10.0.0.256", "a" * 63 + ".b" * 96],
    ids=["none", "another", "like an address", "of 255 characters"],
)
def test_a_client_is_served_whatever_server_name_it_sends(keys: KeyFiles, name: str | None) -> None:
    """The name (SNI) chooses nothing: a listener has one certificate, as in Kafka."""
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(keys.store),
    }
    context = ssl.create_default_context(cafile=str(keys.certificate))
    context.check_hostname = False  # the certificate is for 127.0.0.1
    api_versions = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
    with EmbeddedBroker(settings=settings) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=name) as sock,
        ):
            sock.sendall(api_versions)
            assert sock.recv(10)[4:] == bytes.fromhex("00000007 0000")


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("protocol", "texts", "says"),
    [
        ("SSL", {}, "neither ssl.truststore.location nor"),
        (
            "SASL_PLAINTEXT",
            {},
            "sasl.mechanism.inter.broker.protocol is GSSAPI, which is not among",
        ),
        (
            "SASL_PLAINTEXT",
            {"sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "listener.name.in.plain.sasl.jaas.config has no username and password",
        ),
        (
            "SASL_PLAINTEXT",
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "listener.name.in.scram-sha-256.sasl.jaas.config has no username and password",
        ),
    ],
)
def test_brokers_that_could_not_reach_each_other_do_not_start(
    keys: KeyFiles, protocol: str, texts: dict[str, str], says: str
) -> None:
    given = {
        "ssl.keystore.location": str(keys.store),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.in.plain.sasl.jaas.config": f'{PLAIN} required user_a="{CANARY}";',
        **texts,
    }
    endpoint = Endpoint("IN", SecurityProtocol(protocol), "", 0)
    found = protections([endpoint], given, SystemClock(), Random(1))
    with pytest.raises(ConfigError) as caught:
        peer_security(ListenerSecurity("IN", endpoint.protocol, given), found["IN"])
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_broker_logs_in_with_the_settings_of_its_listener(keys: KeyFiles) -> None:
    given = {
        "ssl.keystore.location": str(keys.store),
        "ssl.truststore.location": str(keys.certificate),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.in.ssl.endpoint.identification.algorithm": "",
        "listener.name.in.plain.sasl.jaas.config": (
            f'{PLAIN} required username="b" password="s" user_b="s";'
        ),
    }
    endpoint = Endpoint("IN", SecurityProtocol.SASL_SSL, "", 0)
    found = protections([endpoint], given, SystemClock(), Random(1))
    security = peer_security(ListenerSecurity("IN", endpoint.protocol, given), found["IN"])()
    assert security.login == Login("PLAIN", "b", "s")
    assert security.tls is not None
    assert not security.tls.check_hostname
    assert security.tls.verify_mode == ssl.CERT_REQUIRED
