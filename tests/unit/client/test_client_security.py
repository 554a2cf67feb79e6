"""Client security settings in Java's and librdkafka's spelling, and what is refused."""

import ssl
from pathlib import Path

import pytest

from penstock.client.sasl import Login
from penstock.client.security import NO_SECURITY, client_security
from penstock.errors import ConfigError
from support.security.certificates import KeyFiles, certified

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return certified(tmp_path_factory.mktemp("keys"), "own")


def test_without_settings_nothing_is_configured() -> None:
    assert client_security({}) == NO_SECURITY
    assert client_security({"client.id": "x", "security.protocol": "PLAINTEXT"}) == NO_SECURITY


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": 'p;"w'},
        {"sasl.mechanisms": "PLAIN", "sasl.username": "a", "sasl.password": 'p;"w'},
        {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} required username="a" password="p;\\"w";',
        },
    ],
)
def test_a_login_is_read_in_either_spelling(given: dict[str, str]) -> None:
    found = client_security({"security.protocol": "SASL_PLAINTEXT", **given})
    assert found.login == Login("PLAIN", "a", 'p;"w')
    assert found.tls is None


def test_keys_and_authorities_come_from_files_or_text(keys: KeyFiles) -> None:
    for given in (
        {"ssl.truststore.location": str(keys.certificate), "ssl.truststore.type": "PEM"},
        {"ssl.ca.location": str(keys.certificate), "ssl.keystore.location": str(keys.store)},
        {
            "ssl.truststore.certificates": keys.certificate.read_text(),
            "ssl.keystore.key": keys.key.read_text(),
            "ssl.keystore.certificate.chain": keys.certificate.read_text(),
        },
        {
            "ssl.key.location": str(keys.key),
            "ssl.certificate.location": str(keys.certificate),
            "ssl.endpoint.identification.algorithm": "",
        },
    ):
        found = client_security({"security.protocol": "SSL", **given})
        assert found.tls is not None
        assert found.tls.check_hostname is ("ssl.endpoint.identification.algorithm" not in given)


@pytest.mark.parametrize(
    "suites", ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"]
)
def test_cipher_suites_have_the_names_of_java_or_openssl(suites: str) -> None:
    found = client_security({"security.protocol": "SSL", "ssl.cipher.suites": suites})
    assert found.tls is not None
    assert found.tls.maximum_version is ssl.TLSVersion.TLSv1_2
    older = [each["name"] for each in found.tls.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS', must be one of"),
        ({"ssl.ca.location": "x"}, "no effect while security.protocol is PLAINTEXT"),
        (
            {"security.protocol": "SSL", "ssl.engine.factory.class": "x"},
            "factory.class is not supp",
        ),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "x"}, "ssl.cipher.suites: x is not"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "'SSLv3' is not one of"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "only PEM is read"),
        ({"security.protocol": "SSL", "ssl.ca.location": "nowhere"}, "cannot read nowhere: No"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "canary"}, "go together"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is 'GSSAPI', must be one of PLAIN"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "there is no sasl.username"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "x required password=canary;",
            },
            "does not name a login module for PLAIN",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f"{PLAIN} required canary;",
            },
            'option 1 must be name="value"',
        ),
    ],
)
def test_an_error_about_an_unusable_setting_shows_no_secret(
    given: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        client_security(given)
    assert says in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "setting", "says"),
    [
        ("junk", "ssl.ca.location", r"ssl\.truststore: .*junk is not usable as PEM"),
        ("junk", "ssl.keystore.location", r"ssl\.keystore\.location: .*junk holds no private key"),
        ("PRIVATE KEY-----", "ssl.keystore.location", r"ssl\.keystore: .*junk is not usable"),
    ],
)
def test_an_error_names_a_file_without_the_expected_content(
    tmp_path: Path, content: str, setting: str, says: str
) -> None:
    (tmp_path / "junk").write_text(content)
    with pytest.raises(ConfigError, match=says):
        client_security({"security.protocol": "SSL", setting: str(tmp_path / "junk")})


def test_an_error_names_a_certificate_without_its_key(keys: KeyFiles) -> None:
    found = f"ssl.key.location: {keys.certificate} holds no private key"
    given = {"ssl.key.location": keys.certificate, "ssl.certificate.location": keys.certificate}
    with pytest.raises(ConfigError, match=found):
        client_security({"security.protocol": "SSL", **{k: str(v) for k, v in given.items()}})
