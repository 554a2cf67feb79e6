"""Security settings of a job: translated, or refused with what to write instead."""

import pickle
import ssl
import subprocess
from pathlib import Path

import pytest

from penstock.client.jaas import parse_jaas
from penstock.client.sasl import Login
from penstock.client.token import TokenSource
from penstock.errors import ConfigError
from penstock.spark.client.security import Tls, read_security
from penstock.spark.client.settings import CLIENT, read_client_settings
from penstock.spark.options import Options

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def security(**settings: str) -> Options:
    return Options({f"kafka.{name.replace('_', '.')}": text for name, text in settings.items()})


def test_the_default_protocol_is_plaintext() -> None:
    found = read_security(Options({}))
    assert (found.tls, found.login) == (None, None)


@pytest.mark.parametrize(
    ("text", "mechanism", "login"),
    [
        (f'{PLAIN} required username="u" password="p";', "PLAIN", ("u", "p")),
        (f"{SCRAM} required\n username='a b'\n password=\"q\\\"=;\" ;", "SCRAM-SHA-512", ("a b", 'q"=;')),  # noqa: E501
        (f"{SCRAM} REQUIRED username=u password=p;  ", "SCRAM-SHA-256", ("u", "p")),
        (f"shaded.{PLAIN} required // mine\n username=u username=v password=p;", "PLAIN", ("v", "p")),  # noqa: E501
    ],
)  # fmt: skip
def test_a_jaas_string_gives_the_login(text: str, mechanism: str, login: tuple[str, str]) -> None:
    assert parse_jaas(text, mechanism, "kafka.") == Login(mechanism, *login)


@pytest.mark.parametrize(
    ("text", "mechanism", "words"),
    [
        ("", "PLAIN", "nothing is not PlainLoginModule"),
        ("com.example.MyModule required;", "PLAIN", "kafka.sasl.username"),
        (f'{PLAIN} required username="u" password="p";', "SCRAM-SHA-256", "kafka.sasl.mechanism"),
        (f'{PLAIN} username="u" password="p";', "PLAIN", "'required' must follow"),
        (f'{PLAIN} required username="u" password="p"', "PLAIN", "semicolon"),
        (f'{PLAIN} required username="u" password="p;', "PLAIN", "a quote is not closed"),
        (f'{PLAIN} required username="u";', "PLAIN", "no password"),
        (f"{PLAIN} required username;", "PLAIN", 'option 1 must be name="value"'),
    ],
)  # fmt: skip
def test_an_error_about_a_jaas_string_hides_the_password(
    text: str, mechanism: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.sasl\.jaas\.config") as refused:
        parse_jaas(text, mechanism, "kafka.")
    assert words in str(refused.value)
    assert '"p' not in str(refused.value)


def test_a_login_by_name_and_password_is_read() -> None:
    found = read_security(
        security(
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username="u",
            sasl_password="p",
        )
    )
    assert found.login == Login("SCRAM-SHA-512", "u", "p")
    assert found.tls == Tls()
    assert "p'" not in repr(found.login)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain"])
def test_an_error_about_a_mechanism_lists_the_supported_ones(mechanism: str) -> None:
    options = security(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism)
    with pytest.raises(ConfigError, match="use one of PLAIN, SCRAM-SHA-256"):
        read_security(options)


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl_truststore_type": "JKS", "ssl_truststore_location": "/t"},
        {"ssl_keystore_type": "pkcs12", "ssl_keystore_location": "/t"},
        {"ssl_truststore_location": "/some/client.jks"},
        {"ssl_keystore_location": "/some/client.p12"},
    ],
)
def test_an_error_about_java_stores_says_how_to_convert_them(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"openssl pkcs12.*type to PEM"):
        read_security(security(security_protocol="SSL", **settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ssl_keystore_key": "-----BEGIN"}, "go together"),
        ({"ssl_endpoint_identification_algorithm": "ldaps"}, "neither https nor empty"),
        ({"ssl_enabled_protocols": "TLSv1"}, "not one of TLSv1.2, TLSv1.3"),
        ({"ssl_protocol": "SSLv3"}, "kafka.ssl.protocol"),
        ({"ssl_cipher_suites": "RC4"}, "kafka.ssl.cipher.suites: RC4 is not known"),
    ],
)
def test_bad_tls_settings_are_errors(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_security(security(security_protocol="SSL", **settings))


def test_a_file_that_is_not_pem_is_an_error(tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    with pytest.raises(ConfigError, match=f"cannot read .*{bad}"):
        Tls(trusted_path=str(bad)).context()
    bad.write_text("no certificate")
    with pytest.raises(ConfigError, match="not usable as PEM"):
        Tls(trusted_path=str(bad)).context()
    with pytest.raises(ConfigError, match=f"keystore.location: {bad} holds no private key"):
        Tls(own_path=str(bad)).context()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Key and certificate of a self-signed authority, as PEM."""
    folder = tmp_path_factory.mktemp("ca")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]  # noqa: RUF005 - one line more
        + ["-days", "2", "-keyout", str(folder / "key"), "-out", str(folder / "cert")],
        check=True,
        capture_output=True,
    )
    return (folder / "key").read_text(), (folder / "cert").read_text()


def test_given_certificates_are_the_only_ones_trusted(certificate: tuple[str, str]) -> None:
    only_new = {"ssl.enabled.protocols": "TLSv1.3"}
    context = Tls(trusted_pem=certificate[1], check_host=False, versions=only_new).context()
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert not context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_key_given_as_text_is_used(certificate: tuple[str, str]) -> None:
    found = read_security(
        Options(
            {
                "kafka.security.protocol": "SSL",
                "kafka.ssl.keystore.type": "PEM",
                "kafka.ssl.keystore.key": certificate[0],
                "kafka.ssl.keystore.certificate.chain": certificate[1],
            }
        )
    )
    assert found.tls is not None
    assert "BEGIN" not in repr(found.tls)
    found.tls.context()


def test_client_settings_have_the_java_clients_names() -> None:
    options = Options(
        {
            "kafka.bootstrap.servers": "a:1,b",
            "kafka.request.timeout.ms": "5",
            "kafka.client.id": "me",
        }
    )
    assert options.warnings({f"kafka.{name}": use for name, use in CLIENT.items()}) == []
    settings = read_client_settings(options)
    assert [str(each) for each in settings.bootstrap] == ["a:1", "b:9092"]
    assert (settings.request_timeout_ms, settings.client_id) == (5, "me")


def test_a_login_by_access_tokens_is_read() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    found = read_security(
        security(
            security_protocol="SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url="https://issuer/token",
            sasl_jaas_config=f'{module} required clientId="me" clientSecret="canary" scope="s";',
        )
    )
    assert found.login is not None
    source = found.login.token
    assert source == TokenSource("https://issuer/token", "me", "canary", "s", None, "kafka.")
    assert "canary" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found  # Spark sends it to executors


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "there is no kafka.sasl.oauthbearer.token.endpoint.url"),
        ("ftp://x", "kafka.sasl.oauthbearer.token.endpoint.url must be https://"),
        ("https://x/token", "there is no kafka.sasl.oauthbearer.client.credentials.client.id"),
    ],
)
def test_access_tokens_without_a_source_are_refused(url: str, says: str) -> None:
    options = security(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=url,
    )
    with pytest.raises(ConfigError, match=says):
        read_security(options)
