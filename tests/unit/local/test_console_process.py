"""A broker does not start with settings that its console cannot start with."""

import sys
from pathlib import Path

import pytest

from penstock.config.services import ServicesConfig
from penstock.errors import ConfigError
from penstock.local.console_process import check_console

GOOD = """issuer=https://idp.example
client.id=console
redirect.uri=https://console.example/login/oidc/callback
"""


def with_provider(folder: Path) -> ServicesConfig:
    (folder / "users").write_text("bob@example.com operator oidc\n")
    return ServicesConfig(
        penstock_console_listen="127.0.0.1:0",
        penstock_console_users=str(folder / "users"),
        penstock_console_oidc_config=str(folder / "oidc"),
    )


@pytest.mark.parametrize("name", ["jwt", "cryptography"])
def test_the_libraries_for_an_identity_provider_are_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "oidc").write_text(GOOD)
    check_console(with_provider(tmp_path))
    monkeypatch.setitem(sys.modules, name, None)
    check_console(ServicesConfig(penstock_console_listen="127.0.0.1:0"))
    with pytest.raises(
        ConfigError, match=rf"^penstock\.console\.oidc\.config needs {name}: pip install"
    ):
        check_console(with_provider(tmp_path))


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (None, r"^penstock\.console\.oidc\.config \S+/oidc: No such file or directory$"),
        (b"\xff", r"^penstock\.console\.oidc\.config \S+/oidc: is not text$"),
        (b"", r"/oidc: issuer is missing$"),
        (b"realm=a", r"/oidc, line 1: realm is unknown"),
    ],
)
def test_the_file_of_an_identity_provider_must_be_valid(
    tmp_path: Path, content: bytes | None, refusal: str
) -> None:
    if content is not None:
        (tmp_path / "oidc").write_bytes(content)
    with pytest.raises(ConfigError, match=refusal):
        check_console(with_provider(tmp_path))


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (None, r"/users: No such file or directory$"),
        ("", "names no user, so nobody could log in$"),
        ("bob operator", "line 1: must be NAME ROLE HASH$"),
    ],
)
def test_a_users_file_without_a_usable_login_is_refused(
    tmp_path: Path, content: str | None, refusal: str
) -> None:
    config = ServicesConfig(
        penstock_console_listen="127.0.0.1:0", penstock_console_users=str(tmp_path / "users")
    )
    if content is not None:
        (tmp_path / "users").write_text(content)
    with pytest.raises(ConfigError, match=refusal):
        check_console(config)
