"""Java's names of cipher suites, translated to OpenSSL's."""

import ssl

import pytest

from penstock.client.cipher_suites import TLS_1_3, cipher_suites, restrict
from penstock.errors import ConfigError

OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
GCM = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
CHACHA = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"


def test_suites_of_tls_1_2_have_other_names_in_openssl() -> None:
    chosen = cipher_suites("s", [GCM, CHACHA, "TLS_RSA_WITH_AES_128_CBC_SHA"], [OLD])
    names = "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:AES128-SHA"
    assert chosen == (names, (OLD,))


def test_openssl_names_are_accepted_unchanged() -> None:
    chosen = cipher_suites("s", ["ECDHE-RSA-AES256-GCM-SHA384", CHACHA], [OLD])
    assert chosen.openssl == "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305"


def test_a_tls_version_without_a_suite_is_disabled() -> None:
    assert cipher_suites("s", [GCM], [OLD, NEW]).versions == (OLD,)
    assert cipher_suites("s", sorted(TLS_1_3), [OLD, NEW]) == ("", (NEW,))
    assert cipher_suites("s", [GCM, *TLS_1_3], [OLD, NEW]).versions == (OLD, NEW)


@pytest.mark.parametrize(
    ("suites", "versions", "says"),
    [
        (["TLS_NULL"], [OLD], "s: TLS_NULL is not known"),
        (["TLS_AES_128_GCM_SHA256"], [NEW], "all of them or none: add TLS_AES_256_GCM_SHA384"),
        ([GCM], [NEW], "s names no suite of the versions in ssl.enabled.protocols"),
    ],
)
def test_an_unsupported_combination_is_refused(
    suites: list[str], versions: list[ssl.TLSVersion], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        cipher_suites("s", suites, versions)
    assert says in str(caught.value)


def test_a_context_uses_only_the_named_suites() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(context, "s", [GCM])
    assert context.maximum_version is OLD
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]
    with pytest.raises(ConfigError, match="s: this OpenSSL does not have TLS_RSA_WITH_CHACHA20"):
        restrict(context, "s", ["TLS_RSA_WITH_CHACHA20_POLY1305_SHA256"])
