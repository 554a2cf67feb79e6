"""The settings of an identity provider."""

from pathlib import Path

import pytest

from penstock.config.oidc import OidcConfig, is_safe_url, parse_oidc
from penstock.config.setting import settings
from penstock.errors import ConfigError

GOOD = {
    "issuer": "https://login.example",
    "client.id": "console",
    "redirect.uri": "https://console.example/login/oidc/callback",
}


def parsed(**more: str) -> object:
    given = {**GOOD, **{name.replace("_", "."): value for name, value in more.items()}}
    return parse_oidc("\n".join(f"{name} = {value}" for name, value in given.items()), "oidc.conf")


def test_the_settings_are_read_from_a_file() -> None:
    found = parse_oidc(
        "\n".join(f"{name}={value}" for name, value in GOOD.items()) + "\nclient.secret = s\n", "f"
    )
    assert (found.issuer, found.client_id, found.claim) == (GOOD["issuer"], "console", "sub")
    assert found.client_secret is not None
    assert (found.client_secret.value, "= s" in repr(found)) == ("s", False)


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"issuer": ""}, "oidc.conf: issuer is missing"),
        ({"client_id": ""}, "oidc.conf: client.id is missing"),
        ({"claim": ""}, "oidc.conf: claim is missing"),
        ({"issuer": "http://login.example"}, "issuer must be https"),
        ({"issuer": "https://login.example/?a=b"}, "issuer has no query"),
        ({"redirect_uri": "http://console.example/login/oidc/callback"}, "redirect.uri must be"),
        ({"redirect_uri": "https://console.example/"}, "ends in /login/oidc/callback"),
        ({"isuer": "x"}, "oidc.conf, line 4: isuer is unknown; there are issuer, "),
        ({"claim": "sub\nclaim = sub"}, "oidc.conf, line 5: claim is there twice"),
    ],
)
def test_unsafe_settings_are_refused_at_startup(more: dict[str, str], refusal: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(**more)
    assert refusal in str(caught.value)


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://a.example/x?y", True),
        ("http://127.0.0.1:80/", True),
        ("http://[::1]:80/", True),
        ("http://a.example/", False),
        ("http://127.0.0.1.evil.example/", False),
        ("http://127.0.0.1@evil.example/", False),
        ("https://u:p@a.example/", False),
        ("file:///etc/passwd", False),
        ("javascript:alert(1)", False),
        ("https://", False),
        ("https://a.example/\r\nX: y", False),
        ("https://a.example/ü", False),
        ("https://[a", False),
        ("https://a:b/", False),
        ("https://a.example/#x", False),
    ],
)
def test_secrets_are_sent_only_over_safe_urls(url: str, is_safe: bool) -> None:
    assert is_safe_url(url) == is_safe


def test_the_docs_page_of_the_console_lists_the_settings() -> None:
    page = (Path(__file__).parents[3] / "docs/console.md").read_text()
    for name, each in settings(OidcConfig).items():
        assert f"| `{name}` | {each.doc} |" in page
