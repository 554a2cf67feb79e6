"""Principals, and the user that a certificate maps to. Cases with DNs are Kafka's own."""

import subprocess
import time
from pathlib import Path
from ssl import PEM_cert_to_DER_cert

import pytest

from penstock.errors import ConfigError, ProtocolError
from penstock.security.certificate import parse_certificate
from penstock.security.principal import parse_principal, super_users, user
from penstock.security.principal_mapping import mapped, parse_rules

RULES = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L , "
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,c=us", "DUKE"),
        ("OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun"),
    ],
)
def test_the_first_rule_that_matches_the_whole_subject_decides(name: str, expected: str) -> None:
    assert mapped(parse_rules(RULES), name) == expected


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("", "CN=a", "CN=a"),
        ("DEFAULT", "CN=a", "CN=a"),
        (r"RULE:^CN=(.*?)/$1/", "CN=a,OU=b", "a,OU=b"),
        (r"RULE:^CN=(\w*)$/$1/", "CN=a,OU=b", None),
        (r"RULE:^CN=(?<who>\w*)$/$1 from $2/", "CN=a", "a from $2"),
        (r"RULE:^CN=(.*)\/(.*)$/$2\/$1/", "CN=a/b", "b/a"),
    ],
)
def test_rules_are_split_into_their_parts(rules: str, name: str, expected: str | None) -> None:
    assert mapped(parse_rules(rules), name) == expected


@pytest.mark.parametrize(
    "rules", ["default", "RULE:", "RULE:^CN=(.*)$/$1", "RULE:^CN=(.*)$/$1/X", "DEFAULT DEFAULT"]
)
def test_an_error_about_a_malformed_rule_names_the_setting(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules: .* must be DEFAULT or"):
        parse_rules(rules)


def test_an_error_about_an_invalid_pattern_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules: '\(' is not a pattern"):
        parse_rules("RULE:(/$1/")


def der(folder: Path, subj: str, *more: str) -> bytes:
    """A certificate with this subject, created by OpenSSL."""
    out = folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-nodes", "-keyout", str(folder / "key.pem"), "-out", str(out)]
    subprocess.run(
        [*command, "-utf8", "-multivalue-rdn", "-subj", subj, *files, *more],
        check=True,
        capture_output=True,
    )
    return PEM_cert_to_DER_cert(out.read_text())


@pytest.mark.parametrize(
    ("subj", "expected"),
    [
        ("/C=DE/O=Example/OU=data/CN=alice", "CN=alice,OU=data,O=Example,C=DE"),
        ('/CN=a, b\\+c"d"<e>;#=', r"CN=a\, b\+c\"d\"\<e\>\;\#\="),
        ("/O=Zoë/CN= padded ", "CN=\\ padded\\ ,O=Zoë"),
        ("/DC=org/DC=example/UID=u1", "UID=u1,DC=example,DC=org"),
        (
            "/CN=a/emailAddress=a@b",
            "1.2.840.113549.1.9.1=#1603614062,CN=a",
        ),
        ("/O=x/CN=a+OU=b", None),
    ],
)
def test_a_subject_is_written_as_in_java(tmp_path: Path, subj: str, expected: str | None) -> None:
    found = parse_certificate(der(tmp_path, subj)).subject
    if expected is None:
        assert found in {"CN=a+OU=b,O=x", "OU=b+CN=a,O=x"}
    else:
        assert found == expected


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x02\x30\x00"])
def test_bytes_that_are_not_a_certificate_close_the_connection(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="certificate"):
        parse_certificate(data)


def test_names_and_expiry_of_a_certificate_are_read(tmp_path: Path) -> None:
    one = parse_certificate(der(tmp_path, "/CN=a"))
    assert one.alternative_names == frozenset()
    assert one.expires_s - time.time() == pytest.approx(30 * 86400, abs=60)
    more = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "20000"]
    found = parse_certificate(der(tmp_path, "/CN=a", *more))
    assert found.alternative_names == {b"\x82\x09localhost", b"\x87\x04\x7f\x00\x00\x01"}
    assert found.expires_s - time.time() == pytest.approx(20000 * 86400, abs=60)


def test_principals_are_parsed_and_printed() -> None:
    assert parse_principal("User:CN=a,O=b:c") == user("CN=a,O=b:c")
    assert [parse_principal(each) for each in ("alice", "User:", ":a", "")] == [None] * 4
    assert str(user("alice")) == "User:alice"
    assert super_users("User:CN=a,O=b; User:admin;") == {user("CN=a,O=b"), user("admin")}
    with pytest.raises(ConfigError, match=r"super\.users: 'admin' must be type:name"):
        super_users("User:a;admin")
